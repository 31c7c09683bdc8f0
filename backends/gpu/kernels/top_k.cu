// values, ids = the k largest of rows. Blocks sort pieces of a row in shared memory (a bitonic
// network, Batcher 1968) and keep the first items of each; the kept lists are merged, many at a
// time, by the last stages of the same network. An item is the value's key above the index, so that
// all differ and the order does not depend on who sorts. Limited by barriers, then by memory.
#include "backends/gpu/portable.h"
#include "backends/shared/top_k_params.h"

namespace rbee {
namespace gpu {

constexpr u32 kThreads = 512;
constexpr u32 kSlots = 2048;  // kPiece in ops/top_k.cc

constexpr u64 kNoItem = ~static_cast<u64>(0);

RB_DEVICE float lowest() {
  return -infinity();
}

// Items in ascending order are values in descending order, then indices in ascending order.
RB_DEVICE u64 make_item(float x, u32 index) {
  if (is_nan(x)) x = lowest();
  const u32 bits = x == 0.0f ? 0u : bits_of_float(x);
  const u32 ascending = bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
  return static_cast<u64>(~ascending) << 32 | index;
}
RB_DEVICE float value_of(u64 item) {
  const u32 ascending = ~static_cast<u32>(item >> 32);
  return float_of_bits(ascending >> 31 != 0 ? ascending & 0x7fffffffu : ~ascending);
}

RB_DEVICE void exchange(u64* slots, u32 low, u32 high, bool ascending) {
  const u64 a = slots[low], b = slots[high];
  if ((b < a) != ascending) return;
  slots[low] = b;
  slots[high] = a;
}

// Brings the smallest item to the front; all others stay somewhere.
RB_DEVICE void find_first(u64* slots) {
  for (u32 apart = kSlots / 2; apart > 0; apart /= 2) {
    barrier();
    for (u32 low = thread_x(); low < apart; low += kThreads) {
      exchange(slots, low, low + apart, true);
    }
  }
  barrier();
}

// Sorts all slots, of which runs of `run` are sorted already: even ones ascending, odd ones
// descending.
RB_DEVICE void sort_slots(u64* slots, u32 run) {
  for (u32 width = run * 2; width <= kSlots; width *= 2) {
    for (u32 apart = width / 2; apart > 0; apart /= 2) {
      barrier();
      for (u32 pair = thread_x(); pair < kSlots / 2; pair += kThreads) {
        const u32 low = pair / apart * apart * 2 + pair % apart;
        exchange(slots, low, low + apart, width == kSlots || (low & width) == 0);
      }
    }
  }
  barrier();
}

RB_DEVICE void arrange(u64* slots, u32 kept, u32 run) {
  if (kept == 1) {
    find_first(slots);
  } else {
    sort_slots(slots, run);
  }
}

// Every thread gets the sum over the block, always added in the same order.
RB_DEVICE float add_up(float x) {
  RB_SHARED float sums[kThreads];
  sums[thread_x()] = x;
  for (u32 half = kThreads / 2; half > 0; half /= 2) {
    barrier();
    if (thread_x() < half) sums[thread_x()] += sums[thread_x() + half];
  }
  barrier();
  return sums[0];
}

RB_DEVICE float scale_of(const TopKResult& result, u64 row) {
  return result.scale != nullptr ? result.scale[static_cast<i64>(row) * result.scale_row] : 1.0f;
}

// The sum of a piece whose items fill the slots in any order, under `top`.
RB_DEVICE float sum_of_slots(const u64* slots, float top, float scale) {
  float sum = 0;
  for (u32 slot = thread_x(); slot < kSlots; slot += kThreads) {
    const float x = value_of(slots[slot]);
    if (slots[slot] != kNoItem && x != lowest()) sum += exp(scale * (x - top));
  }
  return add_up(sum);
}

// The sum of a row from its pieces' sums, under `top`.
RB_DEVICE float sum_of_pieces(const TopKPiece* pieces, u32 count, float top, float scale) {
  float sum = 0;
  for (u32 i = thread_x(); i < count; i += kThreads) {
    const TopKPiece piece = pieces[i];
    sum += piece.top == top ? piece.sum : piece.sum * exp(scale * (piece.top - top));
  }
  return add_up(sum);
}

RB_DEVICE void write_result(const TopKResult& result, u64 row, const u64* slots, float sum) {
  const i64 at = static_cast<i64>(row);
  for (u32 i = thread_x(); i < result.k; i += kThreads) {
    result.values[at * result.values_row + i * result.values_step] = value_of(slots[i]);
    result.ids[at * result.ids_row + i * result.ids_step] = static_cast<i32>(slots[i]);
  }
  if (result.sum != nullptr && thread_x() == 0) result.sum[at * result.sum_row] = sum;
}

RB_DEVICE void write_list(u64* list, const u64* slots, u32 kept) {
  for (u32 i = thread_x(); i < kept; i += kThreads) list[i] = slots[i];
}

template <class T>
RB_DEVICE void find(const TopKFindParams& p) {
  RB_SHARED u64 slots[kSlots];
  const u64 row = block_x() / p.pieces;
  const u32 piece = block_x() % p.pieces;
  const T* x = static_cast<const T*>(p.x) + static_cast<i64>(row) * p.x_row;
  for (u32 slot = thread_x(); slot < kSlots; slot += kThreads) {
    const u32 index = piece * kSlots + slot;
    slots[slot] = index < p.n ? make_item(load_value(x[index * p.x_step]), index) : kNoItem;
  }
  arrange(slots, p.kept, 1);
  const float top = value_of(slots[0]);
  float sum = 0;
  if (p.result.sum != nullptr) sum = sum_of_slots(slots, top, scale_of(p.result, row));
  if (p.items == nullptr) return write_result(p.result, row, slots, sum);
  write_list(p.items + static_cast<u64>(block_x()) * p.kept, slots, p.kept);
  if (thread_x() == 0) p.ledger[block_x()] = TopKPiece{top, sum};
}

// Slots are filled so that runs of `kept` alternate in direction, as sort_slots wants them.
RB_DEVICE void load_lists(u64* slots, const u64* lists, u32 count, u32 kept) {
  for (u32 slot = thread_x(); slot < kSlots; slot += kThreads) {
    const u32 list = slot / kept, place = slot % kept;
    const u32 from = list % 2 == 0 ? place : kept - 1 - place;
    slots[slot] = list < count ? lists[list * kept + from] : kNoItem;
  }
}

RB_DEVICE void merge(const TopKMergeParams& p) {
  RB_SHARED u64 slots[kSlots];
  const u64 row = block_x() / p.groups;
  const u32 first = block_x() % p.groups * (kSlots / p.kept);
  const u64* lists = p.from + (row * p.lists + first) * p.kept;
  load_lists(slots, lists, p.lists - first, p.kept);
  arrange(slots, p.kept, p.kept);
  if (p.to != nullptr) {
    return write_list(p.to + static_cast<u64>(block_x()) * p.kept, slots, p.kept);
  }
  float sum = 0;
  if (p.result.sum != nullptr) {
    sum = sum_of_pieces(p.ledger + row * p.pieces, p.pieces, value_of(slots[0]),
                        scale_of(p.result, row));
  }
  write_result(p.result, row, slots, sum);
}

#define RB_FIND(dtype, T) RB_KERNEL(top_k_find_##dtype, kThreads, TopKFindParams, (find<T>(p)))
RB_EACH_FLOAT(RB_FIND)
RB_KERNEL(top_k_merge, kThreads, TopKMergeParams, (merge(p)))

}  // namespace gpu
}  // namespace rbee
