#pragma once
// What one row's products of queries, keys and values do with their results: MatvecHeads. A group
// is two rows of one head; of heads that are rotated a pair, then neighbours behind the pairs.

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

// What the token's rotation and place in the cache are, for all threads of a block. Asked for
// before any weight: behind the weights that a block asks for it would come late.
class HeadPlaces {
 public:
  // All threads; done() lets the others see it behind the next barrier.
  RB_DEVICE void ask(const MatvecHeads& heads) {
    mine_ = static_cast<i32>(thread_x());
    slot_ = *heads.slot;
    if (mine_ >= heads.tables.pairs) return;
    const i64 position = *heads.position;
    const RopeTables& tables = heads.tables;
    cos_ = tables.cos[position * tables.cos_row + mine_ * tables.cos_step];
    sin_ = tables.sin[position * tables.sin_row + mine_ * tables.sin_step];
  }
  RB_DEVICE void done(const MatvecHeads& heads) const {
    if (mine_ >= heads.tables.pairs) return;
    turns()[mine_] = {cos_, sin_};
  }

  RB_DEVICE i32 slot() const { return slot_; }
  // The rotation of a group's rows; of values and what is not rotated cos is 1 and sin 0.
  RB_DEVICE HeadTurn turn(const MatvecHeads& heads, const MatvecOnePart& part,
                          i32 first_row) const {
    if (part.kind == 2) return {1, 0};
    const u32 head = divide(static_cast<u32>(first_row) / kMatvecOuts, heads.head_groups);
    const i32 element = first_row - static_cast<i32>(head) * heads.head_dim;
    const i32 pair = heads.tables.interleaved != 0 ? element / kMatvecOuts : element;
    return pair < heads.tables.pairs ? turns()[pair] : HeadTurn{1, 0};
  }

 private:
  RB_DEVICE static HeadTurn* turns() {
    RB_SHARED HeadTurn of_block[kMatvecMostPairs];
    return of_block;
  }

  i32 mine_ = 0, slot_ = -1;
  float cos_ = 1, sin_ = 0;
};

// Where element `at` of all heads' keys (which = 0) or values (1) goes in its cache; null: nowhere.
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
