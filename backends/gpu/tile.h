#pragma once
// Device side of the element-wise kernels: a thread's elements of a Strided space. Included by
// kernels only; backends/gpu/loop.h is the host's side.

#include "backends/gpu/portable.h"
#include "backends/shared/strided_params.h"

namespace rbee {
namespace gpu {

constexpr int kTileThreads = 256;  // kLoopThreads in loop.h

// Elements that a thread takes: 16 bytes at once, at most 8 elements. elements_per_thread() in
// loop.h is the same.
template <class T>
constexpr int kPerThread = sizeof(T) <= 2 ? 8 : 16 / static_cast<int>(sizeof(T));

template <class T, int kCount>
struct alignas(kCount * sizeof(T) < 16 ? kCount * sizeof(T) : 16) TileOf {
  T values[kCount];
};

template <int kOperands>
struct StridedOffsets {
  i64 at[kOperands];  // elements
};

// The offset of element `index` in each operand. Loops have constant bounds, so that compilers keep
// the space in constant memory.
template <int kOperands>
RB_DEVICE StridedOffsets<kOperands> strided_offsets(const Strided<kOperands>& space, u32 index) {
  StridedOffsets<kOperands> offsets = {};
#pragma unroll
  for (int axis = 0; axis < 5; ++axis) {
    if (axis >= space.rank) break;
    // The last axis takes what is left.
    const u32 above = axis + 1 < space.rank ? divide(index, space.sizes[axis]) : 0;
    const u32 here = index - above * space.sizes[axis].divisor;
#pragma unroll
    for (int k = 0; k < kOperands; ++k) {
      offsets.at[k] += static_cast<i64>(here) * space.strides[k][axis];
    }
    index = above;
  }
  return offsets;
}

// An input: its memory, and the type of its elements.
template <class T>
struct In {
  const void* data;
};

template <class T, int kCount>
RB_DEVICE TileOf<T, kCount> load_tile(In<T> in, i64 at, bool same) {
  const T* from = static_cast<const T*>(in.data) + at;
  if (!same) return *reinterpret_cast<const TileOf<T, kCount>*>(from);
  const T value = *from;
  TileOf<T, kCount> tile;
#pragma unroll
  for (int k = 0; k < kCount; ++k) tile.values[k] = value;
  return tile;
}

// Gives a thread its kCount elements of y: f(y, in...) computes a tile of y from tiles of the
// inputs, which are operands 1, 2, ... It is compiled for tiles of kCount and of 1.
template <class Y, int kCount, class F, class... T>
RB_DEVICE void map_space(const Strided<1 + sizeof...(T)>& space, void* y, F f, In<T>... in) {
  const u32 block = block_x() * (kTileThreads * kCount);
  Y* to = static_cast<Y*>(y);
  u32 index = block + thread_x();
  u32 step = kTileThreads;
  if (space.packed != 0) {
    index = block + thread_x() * kCount;
    if (index + kCount <= space.count) {
      const auto offsets = strided_offsets(space, index);
      TileOf<Y, kCount> tile;
      int k = 0;
      // Braces keep the order of the operands.
      struct Call {
        RB_DEVICE Call(F& f, TileOf<Y, kCount>& tile, TileOf<T, kCount>... x) { f(tile, x...); }
      } call{f, tile, (++k, load_tile<T, kCount>(in, offsets.at[k], space.strides[k][0] == 0))...};
      *reinterpret_cast<TileOf<Y, kCount>*>(to + offsets.at[0]) = tile;
      return;
    }
    step = 1;
  }
#pragma unroll 1
  for (int i = 0; i < kCount && index < space.count; ++i, index += step) {
    const auto offsets = strided_offsets(space, index);
    TileOf<Y, 1> tile;
    int k = 0;
    struct Call {
      RB_DEVICE Call(F& f, TileOf<Y, 1>& tile, TileOf<T, 1>... x) { f(tile, x...); }
    } call{f, tile, (++k, load_tile<T, 1>(in, offsets.at[k], true))...};
    to[offsets.at[0]] = tile.values[0];
  }
}

// A float or double as an integer: truncates and saturates, NaN gives 0.
template <class Int, class Float>
RB_DEVICE Int saturate(Float x) {
  constexpr bool kSigned = static_cast<Int>(-1) < static_cast<Int>(0);
  constexpr int kDigits = static_cast<int>(sizeof(Int)) * 8 - (kSigned ? 1 : 0);
  constexpr Float kEnd = static_cast<Float>(static_cast<u64>(1) << (kDigits - 1)) * 2;
  constexpr u64 kMost = ~static_cast<u64>(0) >> (64 - kDigits);
  if (x != x) return 0;
  if (x >= kEnd) return static_cast<Int>(kMost);
  if (x < (kSigned ? -kEnd : Float(0))) return kSigned ? static_cast<Int>(~kMost) : Int(0);
  return static_cast<Int>(x);
}

template <class T>
struct IsFloat {
  static constexpr bool value = false;
};
template <>
struct IsFloat<float> {
  static constexpr bool value = true;
};
template <>
struct IsFloat<double> {
  static constexpr bool value = true;
};

// Any computed number as a stored T, as the seam's cast defines it.
template <class T, class From>
RB_DEVICE T convert(From x) {
  if constexpr (sizeof(Compute<T>) != sizeof(T)) {
    return store_value<T>(static_cast<float>(x));
  } else if constexpr (!IsFloat<T>::value && IsFloat<From>::value) {
    return saturate<T>(x);
  } else {
    return static_cast<T>(x);
  }
}

}  // namespace gpu
}  // namespace rbee
