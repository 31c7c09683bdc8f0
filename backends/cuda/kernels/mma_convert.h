#pragma once
// y = x * weight^T + bias for weights that are not in x's type: packed block types, f8, and f16 or
// bf16 under the other. A step of the weight is read as it lies, one step ahead, and converted into
// shared memory; no converted copy exists. Conversion costs about as much issue time as a third of
// the products.

#include "backends/cuda/kernels/mma_tiles.h"
#include "backends/gpu/kernels/gemm_order.h"
#include "backends/shared/packed_weight.h"

namespace rbee {
namespace gpu {

using LargeTile = MmaTile<128, 128, 2, 4, 4>;
using SmallTile = MmaTile<64, 64, 2, 2, 4>;

// A thread converts kRun elements of a row at a time.
constexpr int kRun = 16;

// Two values rounded to T, the first in the low half.
template <class T>
RB_DEVICE u32 round_pair(float first, float second);
template <>
RB_DEVICE u32 round_pair<f16>(float first, float second) {
  u32 out;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(second), "f"(first));
  return out;
}
template <>
RB_DEVICE u32 round_pair<bf16>(float first, float second) {
  u32 out;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(second), "f"(first));
  return out;
}

// kRun elements as memory holds them, and their values.
template <class Block>
struct PackedRun {
  u32 codes[kRun / 4];
  BlockScale scale;
  static RB_DEVICE i64 row_bytes(int depth) { return packed_layout<Block>(depth).row_bytes; }
  RB_DEVICE void load(const u8* row, int depth, int column) {
    const PackedLayout layout = packed_layout<Block>(depth);
#pragma unroll
    for (int i = 0; i < kRun / 4; ++i) {
      codes[i] = packed_codes<Block>(row, layout, column + 4 * i);
    }
    const PackedScale both = packed_scale<Block>(row, layout, column / 32);
    const int half = column / 16 % 2;
    scale = BlockScale{half != 0 ? both.d[1] : both.d[0], half != 0 ? both.m[1] : both.m[0]};
  }
  RB_DEVICE float value(int i) const {
    return apply_scale(scale, packed_quant<Block>(codes[i / 4], i % 4));
  }
};

template <class W>
struct PlainRun {
  static constexpr int kPacks = kRun / Pack<W>::kCount;
  Pack<W> packs[kPacks];
  static RB_DEVICE i64 row_bytes(int depth) { return static_cast<i64>(depth) * sizeof(W); }
  RB_DEVICE void load(const u8* row, int, int column) {
    const W* from = reinterpret_cast<const W*>(row) + column;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) packs[i] = load128(from + i * Pack<W>::kCount);
  }
  RB_DEVICE float value(int i) const {
    return load_value(packs[i / Pack<W>::kCount].values[i % Pack<W>::kCount]);
  }
};

// A thread's part of the weight: half of a step of one row.
template <class Tile, class T, class Run>
struct WeightStage {
  static_assert(Tile::kOuts * kStepDepth == Tile::kThreads * kRun, "one run a thread and step");
  const u8* row;  // null: beyond the weight's last row
  int depth;
  Run run;
  bool inside = false;

  RB_DEVICE WeightStage(const GemmParams& p, int out0) : depth(p.depth) {
    const int out = out0 + static_cast<int>(thread_x()) / 2;
    row = out < p.outs ? static_cast<const u8*>(p.weight) + out * Run::row_bytes(depth) : nullptr;
  }
  RB_DEVICE void load(int step) {
    const int column = step * kStepDepth + static_cast<int>(thread_x()) % 2 * kRun;
    inside = row != nullptr && column < depth;
    if (inside) run.load(row, depth, column);
  }
  RB_DEVICE void store(u8* to) const {
    const int line = static_cast<int>(thread_x()) / 2;
#pragma unroll
    for (int chunk = 0; chunk < 2; ++chunk) {
      Bytes16 out{};
      if (inside) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          out.words[i] =
              round_pair<T>(run.value(chunk * 8 + 2 * i), run.value(chunk * 8 + 2 * i + 1));
        }
      }
      const int at = static_cast<int>(thread_x()) % 2 * 2 + chunk;
      *reinterpret_cast<Bytes16*>(to + chunk_offset(line, at)) = out;
    }
  }
};

template <class Tile, class T, class Run>
RB_DEVICE void gemm_convert(const GemmParams& p) {
  extern __shared__ __align__(128) u8 stages[];
  const TilePlace place = tile_place<Tile::kRows, Tile::kOuts>(block_x(), p.rows, p.outs);
  const T* x = static_cast<const T*>(p.x);
  const u32 base = shared_address(stages);
  const int steps = (p.depth + kStepDepth - 1) / kStepDepth;
  const auto stage_of = [](int step) { return step % Tile::kStages * Tile::kStageBytes; };
  const auto stage_x = [&](int step) {
    if (step < steps) {
      stage_rows<Tile::kRows, Tile::kThreads>(base + static_cast<u32>(stage_of(step)), x, place.row,
                                              p.rows, step * kStepDepth, p.depth);
    }
    commit_copies();
  };
  WeightStage<Tile, T, Run> weight(p, place.out);
  weight.load(0);
#pragma unroll
  for (int step = 0; step < Tile::kStages - 1; ++step) stage_x(step);
  weight.store(stages + Tile::kRows * kStepBytes);
  float sums[Tile::kM][Tile::kN][4] = {};
  for (int step = 0; step < steps; ++step) {
    wait_copies<Tile::kStages - 2>();
    barrier();
    stage_x(step + Tile::kStages - 1);
    weight.load(step + 1);
    const u32 from = base + static_cast<u32>(stage_of(step));
    multiply_step<Tile, T>(sums, from, from + Tile::kRows * kStepBytes);
    // Last read kStages - 1 steps ago, before the barrier above.
    weight.store(stages + stage_of(step + 1) + Tile::kRows * kStepBytes);
  }
  store_results<Tile>(p, place.row, place.out, sums);
}

#define RB_CONVERT(x, X, weight, Run)                                     \
  RB_KERNEL(gemm_##x##_##weight##_large, LargeTile::kThreads, GemmParams, \
            (gemm_convert<LargeTile, X, Run>(p)))                         \
  RB_KERNEL(gemm_##x##_##weight##_small, SmallTile::kThreads, GemmParams, \
            (gemm_convert<SmallTile, X, Run>(p)))

}  // namespace gpu
}  // namespace rbee
