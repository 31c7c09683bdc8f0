// y = indices that sort rows. A bitonic network (Batcher 1968) sorts pieces of a row in shared
// memory; longer rows are merged: each item finds its place by a binary search in the
// neighbouring run. Items hold their index, so that all differ and every order is stable.
#include "backends/gpu/portable.h"
#include "backends/shared/argsort_params.h"

namespace rbee {
namespace gpu {

constexpr u32 kThreads = 256;
constexpr u32 kSlots = 2048;  // kPiece in ops/argsort.cc

// Keys are unsigned numbers in the order of the elements; NaN is the largest, -0 and 0 are equal.
RB_DEVICE u32 key_of(float x) {
  if (is_nan(x)) return ~0u;
  const u32 bits = x == 0.0f ? 0u : bits_of_float(x);
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}
RB_DEVICE u64 key_of(double x) {
  const u64 top = static_cast<u64>(1) << 63;
  if (x != x) return ~static_cast<u64>(0);
  const u64 bits = x == 0.0 ? 0 : f64::bits_of(x);
  return bits >> 63 != 0 ? ~bits : bits | top;
}
RB_DEVICE u32 key_of(u8 x) {
  return x;
}
RB_DEVICE u32 key_of(u32 x) {
  return x;
}
RB_DEVICE u32 key_of(i16 x) {
  return static_cast<u32>(x + 32768);
}
RB_DEVICE u32 key_of(i32 x) {
  return static_cast<u32>(x) ^ 0x80000000u;
}
RB_DEVICE u64 key_of(i64 x) {
  return static_cast<u64>(x) ^ (static_cast<u64>(1) << 63);
}

// A 32-bit key above its index.
struct Item32 {
  u64 both;

  RB_DEVICE static Item32 make(u32 key, u32 index) {
    return Item32{static_cast<u64>(key) << 32 | index};
  }
  RB_DEVICE static Item32 last() { return Item32{~static_cast<u64>(0)}; }
  RB_DEVICE u32 index() const { return static_cast<u32>(both); }
  RB_DEVICE bool before(const Item32& other) const { return both < other.both; }
};
struct Item64 {
  u64 key;
  u64 place;

  RB_DEVICE static Item64 make(u64 key, u32 index) { return Item64{key, index}; }
  RB_DEVICE static Item64 last() { return Item64{~static_cast<u64>(0), ~static_cast<u64>(0)}; }
  RB_DEVICE u32 index() const { return static_cast<u32>(place); }
  RB_DEVICE bool before(const Item64& other) const {
    return key < other.key || (key == other.key && place < other.place);
  }
};

template <class Item>
RB_DEVICE void exchange(Item* slots, u32 low, u32 high, bool ascending) {
  const Item a = slots[low], b = slots[high];
  if (b.before(a) != ascending) return;
  slots[low] = b;
  slots[high] = a;
}

// Sorts each segment of `size` slots, ascending.
template <class Item>
RB_DEVICE void sort_segments(Item* slots, u32 size) {
  for (u32 width = 2; width <= size; width *= 2) {
    for (u32 apart = width / 2; apart > 0; apart /= 2) {
      barrier();
      for (u32 pair = thread_x(); pair < kSlots / 2; pair += kThreads) {
        const u32 low = pair / apart * apart * 2 + pair % apart;
        exchange(slots, low, low + apart, width == size || (low & width) == 0);
      }
    }
  }
  barrier();
}

template <class T, class Item>
RB_DEVICE void sort_tile(const ArgsortTileParams& p) {
  RB_SHARED Item slots[kSlots];
  const u64 first = static_cast<u64>(block_x()) * (kSlots / p.size);
  const T* x = static_cast<const T*>(p.x);
  for (u32 slot = thread_x(); slot < kSlots; slot += kThreads) {
    const u64 segment = first + slot / p.size;
    const u64 row = segment / p.pieces;
    const u32 index = static_cast<u32>(segment % p.pieces) * kSlots + slot % p.size;
    Item item = Item::last();
    if (row < p.rows && index < p.n) {
      const i64 at = row_start(p.x_rows, static_cast<i64>(row)) + index * p.x_rows.step;
      const auto key = key_of(load_value(x[at]));
      item = Item::make(p.descending != 0 ? ~key : key, index);
    }
    slots[slot] = item;
  }
  sort_segments(slots, p.size);
  for (u32 slot = thread_x(); slot < kSlots; slot += kThreads) {
    const u64 segment = first + slot / p.size;
    const u64 row = segment / p.pieces;
    const u32 index = static_cast<u32>(segment % p.pieces) * kSlots + slot % p.size;
    if (row >= p.rows || index >= p.n) continue;
    if (p.pieces == 1) {
      p.y[row_start(p.y_rows, static_cast<i64>(row)) + index * p.y_rows.step] = slots[slot].index();
    } else {
      static_cast<Item*>(p.items)[row * p.n + index] = slots[slot];
    }
  }
}

// The number of a sorted run's items that come before `item`.
template <class Item>
RB_DEVICE u32 count_before(const Item* run, u32 length, const Item& item) {
  u32 low = 0, high = length;
  while (low < high) {
    const u32 middle = low + (high - low) / 2;
    if (run[middle].before(item)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

template <class Item>
RB_DEVICE void merge(const ArgsortMergeParams& p) {
  const u64 count = p.rows * p.n;
  for (u64 at = grid_thread(); at < count; at += grid_threads()) {
    const u64 row = at / p.n;
    const u32 index = static_cast<u32>(at - row * p.n);
    const Item* items = static_cast<const Item*>(p.from) + row * p.n;
    const u32 begin = index / p.run * p.run;
    const u32 pair = begin / p.run % 2 == 0 ? begin : begin - p.run;  // the start of the result
    const u32 other = begin == pair ? begin + p.run : pair;
    const u32 left = other < p.n ? p.n - other : 0;
    const Item item = items[index];
    const u32 place =
        pair + (index - begin) +
        (left == 0 ? 0 : count_before(items + other, left < p.run ? left : p.run, item));
    if (p.to != nullptr) {
      static_cast<Item*>(p.to)[row * p.n + place] = item;
    } else {
      p.y[row_start(p.y_rows, static_cast<i64>(row)) + place * p.y_rows.step] = item.index();
    }
  }
}

#define RB_TILE(dtype, T, Item) \
  RB_KERNEL(argsort_tile_##dtype, kThreads, ArgsortTileParams, (sort_tile<T, Item>(p)))
RB_TILE(f32, float, Item32)
RB_TILE(f16, f16, Item32)
RB_TILE(bf16, bf16, Item32)
RB_TILE(f8e4m3, f8e4m3, Item32)
RB_TILE(u8, u8, Item32)
RB_TILE(u32, u32, Item32)
RB_TILE(i16, i16, Item32)
RB_TILE(i32, i32, Item32)
RB_TILE(f64, double, Item64)
RB_TILE(i64, i64, Item64)
RB_KERNEL(argsort_merge_key32, kThreads, ArgsortMergeParams, (merge<Item32>(p)))
RB_KERNEL(argsort_merge_key64, kThreads, ArgsortMergeParams, (merge<Item64>(p)))

}  // namespace gpu
}  // namespace rbee
