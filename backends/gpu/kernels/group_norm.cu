// y = (x - mean) / sqrt(variance + eps) * weight + bias over the groups of channels of an image.
// A block reads a group once if its registers can hold it. Larger groups are divided into parts:
// the first kernel computes the moments of each, the second merges them (Chan, Golub, LeVeque 1983)
// and reads x again, mostly from the second-level cache. Memory limits it.
#include "backends/gpu/tile.h"
#include "backends/shared/norm_params.h"

namespace rbee {
namespace gpu {

constexpr int kThreads = kTileThreads;
constexpr int kHeld = 4;  // loads of a thread in flight

enum Operand { kY, kX, kWeight, kBias };

// The number of values, their mean, and the sum of their squared distances from it.
template <class C>
struct Moments {
  C count, mean, squares;
};

// A block's part and group.
struct Place {
  u32 group, part;  // counted over all images; in the space
  i64 image, of_image;

  RB_DEVICE explicit Place(const GroupNormParams& p)
      : group(block_x() / p.parts),
        part(block_x() % p.parts),
        image(group / p.groups),
        of_image(group % p.groups) {}
  RB_DEVICE i64 start(const GroupNormParams& p, Operand operand) const {
    return image * p.image_strides[operand] + of_image * p.group_strides[operand];
  }
};

// A tile: kHeld runs of kCount neighbours for each thread. Element i of run k is at
// tile_index(k) + i; a run is as a whole inside the space or outside it.
template <int kCount>
constexpr u32 kTile = kThreads * kHeld * kCount;
template <int kCount>
RB_DEVICE u32 tile_index(u32 tile, int k) {
  return tile * kTile<kCount> + (k * kThreads + thread_x()) * kCount;
}

template <class T, int kCount>
struct Tile {
  Compute<T> values[kHeld][kCount];

  RB_DEVICE Tile(const GroupNormParams& p, const T* x, u32 tile) {
#pragma unroll
    for (int k = 0; k < kHeld; ++k) {
      const u32 index = tile_index<kCount>(tile, k);
      if (index >= p.space.count) break;
      const auto in =
          load_tile<T, kCount>(In<T>{x}, strided_offsets(p.space, index).at[kX], kCount == 1);
#pragma unroll
      for (int i = 0; i < kCount; ++i) values[k][i] = load_value(in.values[i]);
    }
  }

  // f(value) summed over the tile's values.
  template <int kWave, class F>
  RB_DEVICE Compute<T> sum(const GroupNormParams& p, u32 tile, Compute<T>* slots, F f) const {
    Compute<T> total = 0;
#pragma unroll
    for (int k = 0; k < kHeld; ++k) {
      if (tile_index<kCount>(tile, k) >= p.space.count) break;
#pragma unroll
      for (int i = 0; i < kCount; ++i) total += f(values[k][i]);
    }
    return block_sum<kWave, kThreads>(total, slots);
  }

  template <int kWave>
  RB_DEVICE Moments<Compute<T>> moments(const GroupNormParams& p, u32 tile,
                                        Compute<T>* slots) const {
    using C = Compute<T>;
    const u32 left = p.space.count - tile * kTile<kCount>;
    const C count = static_cast<C>(left < kTile<kCount> ? left : kTile<kCount>);
    const C mean = sum<kWave>(p, tile, slots, [](C x) { return x; }) / count;
    const C squares = sum<kWave>(p, tile, slots, [=](C x) { return (x - mean) * (x - mean); });
    return {count, mean, squares};
  }

  RB_DEVICE void store(const GroupNormParams& p, const Place& place, u32 tile, Compute<T> mean,
                       Compute<T> scale) const {
    using C = Compute<T>;
    T* y = static_cast<T*>(p.y) + place.start(p, kY);
    const T* weight = static_cast<const T*>(p.weight) + place.start(p, kWeight);
    const T* bias = static_cast<const T*>(p.bias) + place.start(p, kBias);
#pragma unroll
    for (int k = 0; k < kHeld; ++k) {
      const u32 index = tile_index<kCount>(tile, k);
      if (index >= p.space.count) break;
      const auto offsets = strided_offsets(p.space, index);
      TileOf<T, kCount> by, plus, out;
      const auto same = [&](Operand of) { return kCount == 1 || p.space.strides[of][0] == 0; };
      if (p.weight != nullptr) {
        by = load_tile<T, kCount>(In<T>{weight}, offsets.at[kWeight], same(kWeight));
      }
      if (p.bias != nullptr) {
        plus = load_tile<T, kCount>(In<T>{bias}, offsets.at[kBias], same(kBias));
      }
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        C value = (values[k][i] - mean) * scale;
        if (p.weight != nullptr) value *= load_value(by.values[i]);
        if (p.bias != nullptr) value += load_value(plus.values[i]);
        out.values[i] = store_value<T>(value);
      }
      *reinterpret_cast<TileOf<T, kCount>*>(y + offsets.at[kY]) = out;
    }
  }
};

template <class C>
RB_DEVICE C scale_of(const Moments<C>& of, float eps) {
  return C(1) / sqrt(of.squares / of.count + static_cast<C>(eps));
}

// Groups of at most one tile.
template <class T, int kWave, int kCount>
RB_DEVICE void group_norm_whole(const GroupNormParams& p) {
  RB_SHARED Compute<T> slots[kThreads / kWave];
  const Place place(p);
  const Tile<T, kCount> tile(p, static_cast<const T*>(p.x) + place.start(p, kX), 0);
  const auto of = tile.template moments<kWave>(p, 0, slots);
  tile.store(p, place, 0, of.mean, scale_of(of, p.eps));
}

template <class T, int kWave, int kCount>
RB_DEVICE void group_norm_moments(const GroupNormParams& p) {
  using C = Compute<T>;
  RB_SHARED C slots[kThreads / kWave];
  const Place place(p);
  const T* x = static_cast<const T*>(p.x) + place.start(p, kX);
  Moments<C> all = {};
  u32 tile = place.part * p.tiles;
  for (u32 i = 0; i < p.tiles && tile * kTile<kCount> < p.space.count; ++i, ++tile) {
    const auto of = Tile<T, kCount>(p, x, tile).template moments<kWave>(p, tile, slots);
    const C count = all.count + of.count;
    const C apart = of.mean - all.mean;
    all.squares += of.squares + apart * apart * (all.count * of.count / count);
    all.mean += apart * (of.count / count);
    all.count = count;
  }
  if (thread_x() != 0) return;
  auto* to = static_cast<Moments<C>*>(p.moments);
  to[static_cast<i64>(place.group) * p.all_parts + p.first_part + place.part] = all;
}

// The moments of a group from its parts' moments.
template <int kWave, class C>
RB_DEVICE Moments<C> join_parts(const Moments<C>* parts, u32 count, C* slots) {
  Moments<C> all = {};
  for (u32 i = thread_x(); i < count; i += kThreads) {
    all.count += parts[i].count;
    all.mean += parts[i].count * parts[i].mean;
  }
  all.count = block_sum<kWave, kThreads>(all.count, slots);
  all.mean = block_sum<kWave, kThreads>(all.mean, slots) / all.count;
  for (u32 i = thread_x(); i < count; i += kThreads) {
    const C apart = parts[i].mean - all.mean;
    all.squares += parts[i].squares + parts[i].count * apart * apart;
  }
  all.squares = block_sum<kWave, kThreads>(all.squares, slots);
  return all;
}

template <class T, int kWave, int kCount>
RB_DEVICE void group_norm_apply(const GroupNormParams& p) {
  using C = Compute<T>;
  RB_SHARED C slots[kThreads / kWave];
  const Place place(p);
  const auto* parts =
      static_cast<const Moments<C>*>(p.moments) + static_cast<i64>(place.group) * p.all_parts;
  const Moments<C> of = join_parts<kWave>(parts, p.all_parts, slots);
  const C scale = scale_of(of, p.eps);
  const T* x = static_cast<const T*>(p.x) + place.start(p, kX);
  u32 tile = place.part * p.tiles;
  for (u32 i = 0; i < p.tiles && tile * kTile<kCount> < p.space.count; ++i, ++tile) {
    Tile<T, kCount>(p, x, tile).store(p, place, tile, of.mean, scale);
  }
}

#define RB_STAGES(lanes, wave, name, T, kCount)                            \
  RB_KERNEL(group_norm_##name##_whole_##wave, kThreads, GroupNormParams,   \
            (group_norm_whole<T, lanes, kCount>(p)))                       \
  RB_KERNEL(group_norm_##name##_moments_##wave, kThreads, GroupNormParams, \
            (group_norm_moments<T, lanes, kCount>(p)))                     \
  RB_KERNEL(group_norm_##name##_apply_##wave, kThreads, GroupNormParams,   \
            (group_norm_apply<T, lanes, kCount>(p)))
#define RB_ANY(dtype, T) RB_WAVES(RB_STAGES, dtype, T, 1)
#define RB_PACKED(dtype, T) RB_WAVES(RB_STAGES, dtype##_packed, T, kPerThread<T>)
RB_EACH_FLOAT_TYPE(RB_ANY)
RB_EACH_FLOAT(RB_PACKED)

}  // namespace gpu
}  // namespace rbee
