#pragma once
// Shares a tile of a product among a block's threads on targets without matrix instructions (gfx9
// up to gfx906, gfx10): each sums 8 x 8 or 8 x 4 results in registers, two elements of the depth at
// a time. f16 takes v_dot2_f32_f16 if the target has it (AMD ISA documents: Vega 7nm, RDNA2);
// else pairs are widened to float. These instructions limit it: a read of 16 bytes serves 16 or
// more.

#include "backends/gpu/kernels/gemm_order.h"
#include "backends/rocm/kernels/matrix_units.h"
#include "backends/shared/product_params.h"

#if !RB_MATRIX_UNIT

#if defined(__gfx906__) || defined(__gfx1011__) || defined(__gfx1012__) || defined(__gfx1030__) || \
    defined(__gfx1031__) || defined(__gfx1032__) || defined(__gfx1033__) ||                        \
    defined(__gfx1034__) || defined(__gfx1035__) || defined(__gfx1036__)
#define RB_HAS_DOT2 1
#else
#define RB_HAS_DOT2 0
#endif

namespace rbee {
namespace gpu {

// kLines rows of x by kLines of the weight; kThreadsM x kThreadsN threads share it. A thread's rows
// are kThreadsM apart and its columns kThreadsN, so that neighbours read and write neighbours.
template <int kLines_, int kThreadsM_>
struct DotTile {
  static constexpr int kLines = kLines_, kThreadsM = kThreadsM_, kThreadsN = 16;
  static constexpr int kThreads = kThreadsM * kThreadsN;
  static constexpr int kM = kLines / kThreadsM;  // results of a thread, down
  static constexpr int kN = kLines / kThreadsN;  // and across
  static constexpr int kOperandBytes = kLines * kStepBytes;
  using Sums = float[kM][kN];
  static_assert(kThreads == 2 * kLines, "a thread moves one run of each operand a step");
};
using LargeTile = DotTile<128, 16>;
using SmallTile = DotTile<64, 8>;

// Two neighbouring elements of the depth, ready for multiplication.
template <class T>
struct DotPair {
  float low, high;
  RB_DEVICE explicit DotPair(u32 word) {
    if constexpr (SameType<T, bf16>::value) {
      low = __builtin_bit_cast(float, word << 16);
      high = __builtin_bit_cast(float, word & 0xffff0000u);
    } else {
      struct Halves {
        _Float16 values[2];
      };
      const auto halves = __builtin_bit_cast(Halves, word);
      low = static_cast<float>(halves.values[0]);
      high = static_cast<float>(halves.values[1]);
    }
  }
  RB_DEVICE float multiply_add(const DotPair& other, float sum) const {
    return fma(low, other.low, fma(high, other.high, sum));
  }
};
#if RB_HAS_DOT2
template <>
struct DotPair<f16> {
  using Halves = _Float16 __attribute__((ext_vector_type(2)));
  Halves halves;
  RB_DEVICE explicit DotPair(u32 word) : halves(__builtin_bit_cast(Halves, word)) {}
  RB_DEVICE float multiply_add(const DotPair& other, float sum) const {
    return __builtin_amdgcn_fdot2(halves, other.halves, sum, false);
  }
};
#endif

// Adds the products of two elements of the depth.
template <class Tile, class T>
RB_DEVICE void multiply_pairs(typename Tile::Sums& sums, const Bytes16 (&a)[Tile::kM],
                              const Bytes16 (&b)[Tile::kN], int word) {
#pragma unroll
  for (int n = 0; n < Tile::kN; ++n) {
    const DotPair<T> w(b[n].words[word]);
#pragma unroll
    for (int m = 0; m < Tile::kM; ++m) {
      sums[m][n] = DotPair<T>(a[m].words[word]).multiply_add(w, sums[m][n]);
    }
  }
}

// Adds the products of one staged step.
template <class Tile, class T>
RB_DEVICE void multiply_step(typename Tile::Sums& sums, const u8* x, const u8* weight) {
  const int row0 = static_cast<int>(thread_x()) / Tile::kThreadsN;
  const int out0 = static_cast<int>(thread_x()) % Tile::kThreadsN;
#pragma unroll 1
  for (int chunk = 0; chunk < kStepBytes / 16; ++chunk) {
    Bytes16 a[Tile::kM], b[Tile::kN];
#pragma unroll
    for (int n = 0; n < Tile::kN; ++n) {
      const u32 at = chunk_offset(out0 + n * Tile::kThreadsN, chunk);
      b[n] = *reinterpret_cast<const Bytes16*>(weight + at);
    }
#pragma unroll
    for (int m = 0; m < Tile::kM; ++m) {
      const u32 at = chunk_offset(row0 + m * Tile::kThreadsM, chunk);
      a[m] = *reinterpret_cast<const Bytes16*>(x + at);
    }
#pragma unroll
    for (int word = 0; word < 4; ++word) multiply_pairs<Tile, T>(sums, a, b, word);
  }
}

// store(row, out, sum) for each result of the thread.
template <class Tile, class Store>
RB_DEVICE void each_result(TilePlace place, const typename Tile::Sums& sums, Store store) {
  const int row0 = place.row + static_cast<int>(thread_x()) / Tile::kThreadsN;
  const int out0 = place.out + static_cast<int>(thread_x()) % Tile::kThreadsN;
#pragma unroll
  for (int m = 0; m < Tile::kM; ++m) {
#pragma unroll
    for (int n = 0; n < Tile::kN; ++n) {
      store(row0 + m * Tile::kThreadsM, out0 + n * Tile::kThreadsN, sums[m][n]);
    }
  }
}

template <class Tile, class Y>
RB_DEVICE void store_tile(const GemmParams& p, TilePlace place, const typename Tile::Sums& sums) {
  const int row0 = place.row + static_cast<int>(thread_x()) / Tile::kThreadsN;
  const int out0 = place.out + static_cast<int>(thread_x()) % Tile::kThreadsN;
#pragma unroll
  for (int n = 0; n < Tile::kN; ++n) {
    const int out = out0 + n * Tile::kThreadsN;
    if (out >= p.outs) break;
    const float bias = p.bias != nullptr ? load_value(static_cast<const Y*>(p.bias)[out]) : 0.0f;
#pragma unroll
    for (int m = 0; m < Tile::kM; ++m) {
      const int row = row0 + m * Tile::kThreadsM;
      if (row >= p.rows) break;
      Y* y = static_cast<Y*>(p.y) + row * p.y_row + out;
      *y = store_value<Y>(sums[m][n] + bias);
    }
  }
}

}  // namespace gpu
}  // namespace rbee

#endif
