#pragma once
// Stores the queries, keys and values of one row's products: MatvecHeads. A group is two rows of
// one head: in rotated heads a rotated pair, and after the pairs two neighbours.

#include "backends/gpu/portable.h"
#include "backends/shared/matvec_params.h"

namespace rbee {
namespace gpu {

struct HeadRows {
  i32 first;
  i32 step;  // from the first to the second
};

struct HeadTurn {
  float cos, sin;
};

RB_DEVICE HeadRows head_rows(const MatvecHeads& heads, const MatvecOnePart& part, i32 group) {
  if (part.kind == 2 || heads.tables.interleaved != 0) return {group * kMatvecOuts, 1};
  const u32 head = divide(static_cast<u32>(group), heads.head_groups);
  const i32 first = static_cast<i32>(head) * heads.head_dim;
  const i32 pair = group - static_cast<i32>(head * heads.head_groups.divisor);
  const i32 pairs = heads.tables.pairs;
  if (pair < pairs) return {first + pair, pairs};
  return {first + pair * kMatvecOuts, 1};
}

// The rotated pair among queries' or keys' rows from `first_row` on; tables.pairs or more:
// none.
RB_DEVICE i32 pair_of(const MatvecHeads& heads, i32 first_row) {
  const u32 head = divide(static_cast<u32>(first_row) / kMatvecOuts, heads.head_groups);
  const i32 element = first_row - static_cast<i32>(head) * heads.head_dim;
  return heads.tables.interleaved != 0 ? element / kMatvecOuts : element;
}
RB_DEVICE HeadTurn read_turn(const RopeTables& tables, i64 position, i32 pair) {
  return {tables.cos[position * tables.cos_row + pair * tables.cos_step],
          tables.sin[position * tables.sin_row + pair * tables.sin_step]};
}

// The token's rotation and its place in the cache, for all threads of a block. Loaded before any
// weight, because after a block's weights it would come late.
class HeadPlaces {
 public:
  static constexpr bool kEarly = false;  // whether turn() may be called right after ask()

  // All threads call it; done() shows it to the others after the next barrier.
  RB_DEVICE void ask(const MatvecHeads& heads) {
    mine_ = static_cast<i32>(thread_x());
    slot_ = *heads.slot;
    if (mine_ < heads.tables.pairs) turn_ = read_turn(heads.tables, *heads.position, mine_);
  }
  RB_DEVICE void done(const MatvecHeads& heads) const {
    if (mine_ < heads.tables.pairs) turns()[mine_] = turn_;
  }

  RB_DEVICE i32 slot() const { return slot_; }
  // Of pair_of(); without a pair cos is 1 and sin 0.
  RB_DEVICE HeadTurn turn(const MatvecHeads& heads, i32 pair) const {
    return pair < heads.tables.pairs ? turns()[pair] : HeadTurn{1, 0};
  }

 private:
  RB_DEVICE static HeadTurn* turns() {
    RB_SHARED HeadTurn of_block[kMatvecMostPairs];
    return of_block;
  }

  i32 mine_ = 0, slot_ = -1;
  HeadTurn turn_{1, 0};
};

// The same for threads that each read what they need, if other threads fetch the weights.
class OwnHeadPlaces {
 public:
  static constexpr bool kEarly = true;

  RB_DEVICE void ask(const MatvecHeads& heads) {
    slot_ = *heads.slot;
    position_ = *heads.position;
  }
  RB_DEVICE i32 slot() const { return slot_; }
  RB_DEVICE HeadTurn turn(const MatvecHeads& heads, i32 pair) const {
    return pair < heads.tables.pairs ? read_turn(heads.tables, position_, pair) : HeadTurn{1, 0};
  }

 private:
  i32 slot_ = -1, position_ = 0;
};

// The address in its cache of element `at` of all heads' keys (which = 0) or values (1); null: it
// is not stored.
RB_DEVICE void* cache_element(const MatvecHeads& heads, int which, i32 slot, i32 at) {
  if (slot < 0) return nullptr;
  const i64(&strides)[3] = heads.cache_strides[which];
  const u32 head = divide(static_cast<u32>(at) / kMatvecOuts, heads.head_groups);
  const i64 block = slot / heads.block_size;
  const i64 to = block * strides[0] + head * strides[1] +
                 (slot - block * heads.block_size) * strides[2] +
                 (at - static_cast<i32>(head) * heads.head_dim);
  const i64 bytes = heads.cache_to == 0 ? 4 : heads.cache_to <= 2 ? 2 : 1;
  return static_cast<u8*>(heads.caches[which]) + to * bytes;
}
RB_DEVICE void write_cache(const MatvecHeads& heads, void* to, float value) {
  if (heads.cache_to == 0) {
    *static_cast<float*>(to) = value;
  } else if (heads.cache_to == 1) {
    *static_cast<f16*>(to) = store_value<f16>(value);
  } else if (heads.cache_to == 2) {
    *static_cast<bf16*>(to) = store_value<bf16>(value);
  } else {
    *static_cast<f8e4m3*>(to) = store_value<f8e4m3>(value);
  }
}

}  // namespace gpu
}  // namespace rbee
