#pragma once
// Shares a tile of a product among a block's waves on matrix instructions (see matrix_units.h).

#include "backends/gpu/kernels/gemm_order.h"
#include "backends/rocm/kernels/matrix_units.h"
#include "backends/shared/product_params.h"

#if RB_MATRIX_UNIT

namespace rbee {
namespace gpu {

// kLines rows of x by kLines of the weight; kWavesM x kWavesN waves share it.
template <int kLines_, int kWavesM_, int kWavesN_>
struct MatrixTile {
  static constexpr int kLines = kLines_, kWavesM = kWavesM_, kWavesN = kWavesN_;
  static constexpr int kThreads = kWave * kWavesM * kWavesN;
  static constexpr int kM = kLines / kWavesM / 16;  // 16 x 16 results of a wave, down
  static constexpr int kN = kLines / kWavesN / 16;  // and across
  static constexpr int kOperandBytes = kLines * kStepBytes;
  using Sums = Results[kM][kN];
  static_assert(kThreads == 2 * kLines, "a thread moves one run of each operand a step");
};
#if RB_MFMA
using LargeTile = MatrixTile<128, 2, 2>;
using SmallTile = MatrixTile<64, 1, 2>;
#else
using LargeTile = MatrixTile<128, 2, 4>;
using SmallTile = MatrixTile<64, 2, 2>;
#endif

// Adds the products of one staged step.
template <class Tile, class T>
RB_DEVICE void multiply_step(typename Tile::Sums& sums, const u8* x, const u8* weight) {
  const int lane = static_cast<int>(thread_x()) % kWave;
  const int wave = static_cast<int>(thread_x()) / kWave;
  const int row0 = wave % Tile::kWavesM * (Tile::kM * 16);
  const int out0 = wave / Tile::kWavesM * (Tile::kN * 16);
  Fragment b[Tile::kN];
#pragma unroll
  for (int n = 0; n < Tile::kN; ++n) b[n].load(weight, out0 + n * 16, lane);
#pragma unroll
  for (int m = 0; m < Tile::kM; ++m) {
    Fragment a;
    a.load(x, row0 + m * 16, lane);
#pragma unroll
    for (int n = 0; n < Tile::kN; ++n) multiply_add<T>(sums[m][n], a, b[n]);
  }
}

// store(row, out, sum) for each result of the thread.
template <class Tile, class Store>
RB_DEVICE void each_result(TilePlace place, const typename Tile::Sums& sums, Store store) {
  const int lane = static_cast<int>(thread_x()) % kWave;
  const int wave = static_cast<int>(thread_x()) / kWave;
  const int row0 = place.row + wave % Tile::kWavesM * (Tile::kM * 16);
  const int out0 = place.out + wave / Tile::kWavesM * (Tile::kN * 16) + lane % 16;
  constexpr int kCount = sizeof(Results) / sizeof(float);
#pragma unroll
  for (int m = 0; m < Tile::kM; ++m) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
#pragma unroll
      for (int n = 0; n < Tile::kN; ++n) {
        store(row0 + m * 16 + result_row(i, lane), out0 + n * 16, sums[m][n][i]);
      }
    }
  }
}

template <class Tile, class Y>
RB_DEVICE void store_tile(const GemmParams& p, TilePlace place, const typename Tile::Sums& sums) {
  const int lane = static_cast<int>(thread_x()) % kWave;
  const int wave = static_cast<int>(thread_x()) / kWave;
  const int row0 = place.row + wave % Tile::kWavesM * (Tile::kM * 16);
  const int out0 = place.out + wave / Tile::kWavesM * (Tile::kN * 16) + lane % 16;
  constexpr int kCount = sizeof(Results) / sizeof(float);
#pragma unroll
  for (int n = 0; n < Tile::kN; ++n) {
    const int out = out0 + n * 16;
    if (out >= p.outs) break;
    const float bias = p.bias != nullptr ? load_value(static_cast<const Y*>(p.bias)[out]) : 0.0f;
#pragma unroll
    for (int m = 0; m < Tile::kM; ++m) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        const int row = row0 + m * 16 + result_row(i, lane);
        if (row >= p.rows) continue;
        Y* y = static_cast<Y*>(p.y) + row * p.y_row + out;
        *y = store_value<Y>(sums[m][n][i] + bias);
      }
    }
  }
}

}  // namespace gpu
}  // namespace rbee

#endif
