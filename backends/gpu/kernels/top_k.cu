// values, ids = the k largest of rows. Blocks sort pieces of a row by a bitonic network (Batcher
// 1968) into runs of as many items as are kept, and then halve the runs. Of two sorted ones they
// keep the smaller of the one's first and the other's last item, and so on, in an order that the
// network's last stages sort. Lists of several blocks are merged in the same way. An item
// is the value's key above the index, so all items differ and the order does not depend on the
// thread that sorts. Waiting limits it: a stage within a wave takes shuffles, others a
// barrier. The largest alone needs no network: each thread keeps its smallest item.
#include "backends/gpu/portable.h"
#include "backends/shared/top_k_params.h"

namespace rbee {
namespace gpu {

constexpr u32 kThreads = 512;
constexpr u32 kEach = 4;                  // items of a thread; kLeastKept in ops/top_k.cc
constexpr u32 kSlots = kEach * kThreads;  // kPiece there
constexpr u32 kFirstEach = 8;             // elements of a thread of find_first(); kFirstPiece there

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

// kSlots items; thread t holds those with index 4 t + 0..3.
template <int kWave>
class Items {
 public:
  u64 mine[kEach];

  RB_DEVICE Items() : first_(thread_x() * kEach) {}
  RB_DEVICE u32 index(u32 i) const { return first_ + i; }

  // Makes the first `kept` the smallest, ascending. A power of two, 4 to kSlots.
  RB_DEVICE void keep_smallest(u32 kept) {
    for (u32 width = 2; width <= kept; width *= 2) merge_runs(width, kept);
    halve_runs(kSlots, kept);
  }
  // The same for sorted lists of `kept`, twice as many as there is room for.
  RB_DEVICE void keep_smallest_of(const u64* lists, u32 count, u32 kept) {
    fold([&](u32 list, u32 place) { return list < count ? lists[list * kept + place] : kNoItem; },
         kSlots, kept);
    merge_runs(kept, kept);
    halve_runs(kSlots, kept);
  }
  RB_DEVICE void write(u64* list, u32 kept) const {
#pragma unroll
    for (u32 i = 0; i < kEach; ++i) {
      if (index(i) < kept) list[index(i)] = mine[i];
    }
  }
  // The first item, for all threads.
  RB_DEVICE u64 smallest() {
    u64* found = exchange_place();
    if (thread_x() == 0) *found = mine[0];
    barrier();
    return *found;
  }
  // Memory of kSlots items that all threads may write: 32 KiB with what is being read, all that
  // blocks of some devices share. A barrier parts a call from the second one behind it.
  RB_DEVICE u64* exchange_place() {
    RB_SHARED u64 places[2][kSlots];
    turn_ ^= 1;
    return places[turn_];
  }

 private:
  RB_DEVICE u64* show_all() {
    u64* all = exchange_place();
#pragma unroll
    for (u32 i = 0; i < kEach; ++i) all[index(i)] = mine[i];
    barrier();
    return all;
  }

  // Stages of `width`: sorts runs that ascend and then descend, or the reverse. Runs of
  // less than `kept` alternate in direction.
  RB_DEVICE void merge_runs(u32 width, u32 kept) {
    for (u32 apart = width / 2; apart >= kEach; apart /= 2) {
      const bool keeps_less = ((first_ & apart) == 0) == ascends(0, width, kept);
      if (apart >= kEach * kWave) {
        const u64* all = show_all();
#pragma unroll
        for (u32 i = 0; i < kEach; ++i) keep(mine[i], all[index(i) ^ apart], keeps_less);
      } else {
        const int lanes = static_cast<int>(apart / kEach);
#pragma unroll
        for (u32 i = 0; i < kEach; ++i) {
          keep(mine[i], shuffle_xor<kWave>(mine[i], lanes), keeps_less);
        }
      }
    }
    if (width > 2) {
      order(0, 2, ascends(0, width, kept));
      order(1, 3, ascends(0, width, kept));
    }
    order(0, 1, ascends(0, width, kept));
    order(2, 3, ascends(2, width, kept));
  }
  RB_DEVICE bool ascends(u32 i, u32 width, u32 kept) const {
    return width == kept || (index(i) & width) == 0;
  }
  RB_DEVICE static void keep(u64& mine, u64 other, bool less) {
    if ((other < mine) == less) mine = other;
  }
  RB_DEVICE void order(int low, int high, bool ascending) {
    const u64 a = mine[low], b = mine[high];
    if ((b < a) != ascending) return;
    mine[low] = b;
    mine[high] = a;
  }

  // `count` items: the ones to keep of each two of twice as many lists, list(l, place).
  template <class List>
  RB_DEVICE void fold(const List& list, u32 count, u32 kept) {
#pragma unroll
    for (u32 i = 0; i < kEach; ++i) {
      if (index(i) >= count) break;
      const u32 pair = index(i) / kept, place = index(i) % kept;
      const u64 a = list(2 * pair, place), b = list(2 * pair + 1, kept - 1 - place);
      mine[i] = b < a ? b : a;
    }
  }
  // Halves `count` items in sorted runs of `kept` until one run is left.
  RB_DEVICE void halve_runs(u32 count, u32 kept) {
    while (count > kept) {
      const u64* all = show_all();
      count /= 2;
      fold([&](u32 list, u32 place) { return all[list * kept + place]; }, count, kept);
      // Waves without items only wait, together with the others.
      const bool wave_has = first_ / (kEach * kWave) * (kEach * kWave) < count;
      if (wave_has || kept > kEach * kWave) merge_runs(kept, kept);
    }
  }

  u32 first_;
  u32 turn_ = 0;
};

RB_DEVICE float scale_of(const TopKResult& result, u64 row) {
  return result.scale != nullptr ? result.scale[static_cast<i64>(row) * result.scale_row] : 1.0f;
}

// Gives every thread the sum over the block, always added in the same order.
template <int kWave>
RB_DEVICE float add_up(Items<kWave>& items, float x) {
  return block_sum<kWave, kThreads>(x, reinterpret_cast<float*>(items.exchange_place()));
}

// The sum of a row from its pieces' sums, relative to `top`.
template <int kWave>
RB_DEVICE float sum_of_pieces(Items<kWave>& items, const TopKPiece* pieces, u32 count, float top,
                              float scale) {
  float sum = 0;
  for (u32 i = thread_x(); i < count; i += kThreads) {
    const TopKPiece piece = pieces[i];
    sum += piece.top == top ? piece.sum : piece.sum * exp(scale * (piece.top - top));
  }
  return add_up(items, sum);
}

template <int kWave>
RB_DEVICE void write_result(const TopKResult& result, u64 row, const Items<kWave>& items,
                            float sum) {
  const i64 at = static_cast<i64>(row);
#pragma unroll
  for (u32 i = 0; i < kEach; ++i) {
    const u32 place = items.index(i);
    if (place >= result.k) break;
    result.values[at * result.values_row + place * result.values_step] = value_of(items.mine[i]);
    result.ids[at * result.ids_row + place * result.ids_step] = static_cast<i32>(items.mine[i]);
  }
  if (result.sum != nullptr && thread_x() == 0) result.sum[at * result.sum_row] = sum;
}

template <class T, int kWave>
RB_DEVICE void find(const TopKFindParams& p) {
  const u64 row = block_x() / p.pieces;
  const u32 piece = block_x() % p.pieces;
  const T* x = static_cast<const T*>(p.x) + static_cast<i64>(row) * p.x_row;
  Items<kWave> items;
  float values[kEach];
#pragma unroll
  for (u32 i = 0; i < kEach; ++i) {
    // Any thread may sort any item, so neighbours read neighbours.
    const u32 at = piece * kSlots + i * kThreads + thread_x();
    items.mine[i] = at < p.n ? make_item(load_value(x[at * p.x_step]), at) : kNoItem;
    values[i] = at < p.n ? value_of(items.mine[i]) : lowest();
  }
  items.keep_smallest(p.kept);
  const float top = value_of(items.smallest());
  float sum = 0;
  if (p.result.sum != nullptr) {
    const float scale = scale_of(p.result, row);
#pragma unroll
    for (u32 i = 0; i < kEach; ++i) {
      if (values[i] != lowest()) sum += exp(scale * (values[i] - top));
    }
    sum = add_up(items, sum);
  }
  if (p.items == nullptr) return write_result(p.result, row, items, sum);
  items.write(p.items + static_cast<u64>(block_x()) * p.kept, p.kept);
  if (thread_x() == 0) p.ledger[block_x()] = TopKPiece{top, sum};
}

template <int kWave>
RB_DEVICE void merge(const TopKMergeParams& p) {
  const u64 row = block_x() / p.groups;
  const u32 first = block_x() % p.groups * (2 * kSlots / p.kept);
  Items<kWave> items;
  items.keep_smallest_of(p.from + (row * p.lists + first) * p.kept, p.lists - first, p.kept);
  if (p.to != nullptr) return items.write(p.to + static_cast<u64>(block_x()) * p.kept, p.kept);
  const float top = value_of(items.smallest());
  float sum = 0;
  if (p.result.sum != nullptr) {
    sum = sum_of_pieces(items, p.ledger + row * p.pieces, p.pieces, top, scale_of(p.result, row));
  }
  write_result(p.result, row, items, sum);
}

struct Smaller {
  RB_DEVICE u64 operator()(u64 a, u64 b) const { return b < a ? b : a; }
};

// The first of all threads' items; one thread writes it.
template <int kWave>
RB_DEVICE void put_first(const TopKResult& result, u64 row, u64* to, u64 mine) {
  RB_SHARED u64 slots[kThreads / kWave];
  const u64 first = block_reduce<kWave, kThreads>(mine, slots, Smaller{});
  if (thread_x() != 0) return;
  if (to != nullptr) {
    *to = first;
    return;
  }
  result.values[static_cast<i64>(row) * result.values_row] = value_of(first);
  result.ids[static_cast<i64>(row) * result.ids_row] = static_cast<i32>(first);
}

template <class T, int kWave>
RB_DEVICE void find_first(const TopKFindParams& p) {
  const u64 row = block_x() / p.pieces;
  const u32 piece = block_x() % p.pieces;
  const T* x = static_cast<const T*>(p.x) + static_cast<i64>(row) * p.x_row;
  u64 mine = kNoItem;
#pragma unroll
  for (u32 i = 0; i < kFirstEach; ++i) {
    const u32 at = (piece * kFirstEach + i) * kThreads + thread_x();
    if (at < p.n) mine = Smaller{}(mine, make_item(load_value(x[at * p.x_step]), at));
  }
  put_first<kWave>(p.result, row, p.items == nullptr ? nullptr : p.items + block_x(), mine);
}

template <int kWave>
RB_DEVICE void merge_first(const TopKMergeParams& p) {
  const u64* items = p.from + static_cast<u64>(block_x()) * p.lists;
  u64 mine = kNoItem;
  for (u32 i = thread_x(); i < p.lists; i += kThreads) mine = Smaller{}(mine, items[i]);
  put_first<kWave>(p.result, block_x(), nullptr, mine);
}

#define RB_FIND(lanes, wave, dtype, T) \
  RB_KERNEL(top_k_find_##dtype##_##wave, kThreads, TopKFindParams, (find<T, lanes>(p)))
#define RB_MERGE(lanes, wave) \
  RB_KERNEL(top_k_merge_##wave, kThreads, TopKMergeParams, (merge<lanes>(p)))
#define RB_FIND_FIRST(lanes, wave, dtype, T) \
  RB_KERNEL(top_k_first_##dtype##_##wave, kThreads, TopKFindParams, (find_first<T, lanes>(p)))
#define RB_MERGE_FIRST(lanes, wave) \
  RB_KERNEL(top_k_merge_first_##wave, kThreads, TopKMergeParams, (merge_first<lanes>(p)))
#define RB_FIND_WAVES(dtype, T) RB_WAVES(RB_FIND, dtype, T) RB_WAVES(RB_FIND_FIRST, dtype, T)
RB_EACH_FLOAT(RB_FIND_WAVES)
RB_WAVES(RB_MERGE)
RB_WAVES(RB_MERGE_FIRST)

}  // namespace gpu
}  // namespace rbee
