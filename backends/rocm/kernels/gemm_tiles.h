#pragma once
// y = x * weight^T + bias on AMD's matrix instructions, for every kind of weight: a step of both
// operands is read one step ahead into registers and converted on its way into shared memory.
// Large products are limited by the matrix units where x has the weight's type; converting blocks
// costs about half as much again.

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
RB_DEVICE void multiply_step(Results (&sums)[Tile::kM][Tile::kN], const u8* x, const u8* weight) {
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

template <class Tile, class Y>
RB_DEVICE void store_tile(const GemmParams& p, TilePlace place,
                          const Results (&sums)[Tile::kM][Tile::kN]) {
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
        Y* y = static_cast<Y*>(p.y) + static_cast<i64>(row) * p.outs + out;
        *y = store_value<Y>(sums[m][n][i] + bias);
      }
    }
  }
}

template <class Tile, class T, class Run>
RB_DEVICE void gemm(const GemmParams& p) {
  alignas(16) RB_SHARED u8 stages[2][2 * Tile::kOperandBytes];
  const TilePlace place = tile_place<Tile::kLines, Tile::kLines>(block_x(), p.rows, p.outs);
  OperandStage<PlainRun<T>> x(p.x, place.row, p.rows, p.depth);
  OperandStage<Run> weight(p.weight, place.out, p.outs, p.depth);
  const auto load = [&](int step) {
    x.load(step);
    weight.load(step);
  };
  const auto store = [&](u8* stage) {
    x.template store<T>(stage);
    weight.template store<T>(stage + Tile::kOperandBytes);
  };
  const int steps = (p.depth + kStepDepth - 1) / kStepDepth;
  Results sums[Tile::kM][Tile::kN] = {};
  load(0);
  store(stages[0]);
  for (int step = 0; step < steps; ++step) {
    barrier();  // this step is there, and nobody reads the other stage
    load(step + 1);
    const u8* stage = stages[step % 2];
    multiply_step<Tile, T>(sums, stage, stage + Tile::kOperandBytes);
    store(stages[(step + 1) % 2]);
  }
  if (p.y_type == 0) {
    store_tile<Tile, float>(p, place, sums);
  } else if (p.y_type == 1) {
    store_tile<Tile, f16>(p, place, sums);
  } else {
    store_tile<Tile, bf16>(p, place, sums);
  }
}

#define RB_GEMM(suffix, X, Run)                                                                   \
  RB_KERNEL(gemm_##suffix##_large, LargeTile::kThreads, GemmParams, (gemm<LargeTile, X, Run>(p))) \
  RB_KERNEL(gemm_##suffix##_small, SmallTile::kThreads, GemmParams, (gemm<SmallTile, X, Run>(p)))

}  // namespace gpu
}  // namespace rbee

#endif
