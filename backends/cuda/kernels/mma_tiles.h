#pragma once
// Tiles of y = x * weight^T on NVIDIA's tensor cores, sm_80 and later (PTX ISA: mma.m16n8k16,
// ldmatrix, cp.async). A step is 32 elements of the depth: 64 bytes of each row, staged in shared
// memory with its 16-byte chunks swizzled, so that the eight rows that ldmatrix reads at once lie
// in different banks.

#include "backends/cuda/kernels/gemm_store.h"
#include "backends/cuda/kernels/mma_ptx.h"
#include "backends/gpu/kernels/gemm_stage.h"

namespace rbee {
namespace gpu {

// kRows rows of x by kOuts rows of the weight; kWarpsM x kWarpsN warps share it.
template <int kRows_, int kOuts_, int kWarpsM_, int kWarpsN_, int kStages_>
struct MmaTile {
  static constexpr int kRows = kRows_, kOuts = kOuts_, kStages = kStages_;
  static constexpr int kWarpsM = kWarpsM_, kWarpsN = kWarpsN_;
  static constexpr int kThreads = 32 * kWarpsM * kWarpsN;
  static constexpr int kM = kRows / kWarpsM / 16;  // 16 x 8 results of a warp, down
  static constexpr int kN = kOuts / kWarpsN / 8;   // and across
  static constexpr int kStageBytes = (kRows + kOuts) * kStepBytes;
};

// Queues the copy of one step of kRows lines, from line0 and depth0 on; zeros beyond the operand's
// ends. Its depth is a multiple of 8.
template <int kRows, int kThreads>
RB_DEVICE void stage_rows(u32 to, const Operand& from, int line0, int depth0) {
  const u16* data = static_cast<const u16*>(from.data);
  constexpr int kChunks = kRows * 4;
  static_assert(kChunks % kThreads == 0, "every thread copies as much");
#pragma unroll
  for (int i = 0; i < kChunks / kThreads; ++i) {
    const int at = i * kThreads + static_cast<int>(thread_x());
    const int row = at / 4, chunk = at % 4;
    const int k = depth0 + chunk * 8;
    const bool inside = line0 + row < from.lines && k < from.depth;
    const u16* source = inside ? data + static_cast<i64>(line0 + row) * from.pitch + k : data;
    copy_async16(to + chunk_offset(row, chunk), source, inside ? 16 : 0);
  }
}

// Adds the products of one staged step: x and weight are the places of its two operands.
template <class Tile, class T>
RB_DEVICE void multiply_step(float (&sums)[Tile::kM][Tile::kN][4], u32 x, u32 weight) {
  const int lane = static_cast<int>(thread_x()) % 32;
  const int warp = static_cast<int>(thread_x()) / 32;
  const int row = warp % Tile::kWarpsM * (Tile::kM * 16) + lane % 16;
  const int out = warp / Tile::kWarpsM * (Tile::kN * 8) + lane % 8 + lane / 16 * 8;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    u32 a[Tile::kM][4];
    u32 b[Tile::kN / 2][4];  // two neighbouring 8-column matrices each
#pragma unroll
    for (int m = 0; m < Tile::kM; ++m) {
      load_matrices(a[m], x + chunk_offset(row + m * 16, half * 2 + lane / 16));
    }
#pragma unroll
    for (int n = 0; n < Tile::kN / 2; ++n) {
      load_matrices(b[n], weight + chunk_offset(out + n * 16, half * 2 + lane / 8 % 2));
    }
#pragma unroll
    for (int m = 0; m < Tile::kM; ++m) {
#pragma unroll
      for (int n = 0; n < Tile::kN; ++n) {
        multiply_add<T>(sums[m][n], a[m], b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
      }
    }
  }
}

// Adds the products of all steps; copies run kStages - 1 steps ahead. copy(step, to) queues the
// copies of one step: its rows of x to `to`, those of the weight after them. stages: the start of
// the block's kStages * kStageBytes of shared memory.
template <class Tile, class T, class Copy>
RB_DEVICE void multiply_steps(float (&sums)[Tile::kM][Tile::kN][4], u32 stages, int depth,
                              const Copy& copy) {
  const int steps = (depth + kStepDepth - 1) / kStepDepth;
  const auto stage = [&](int step) {
    if (step < steps)
      copy(step, stages + static_cast<u32>(step % Tile::kStages * Tile::kStageBytes));
    commit_copies();  // empty groups too, so that counting them counts steps
  };
#pragma unroll
  for (int step = 0; step < Tile::kStages - 1; ++step) stage(step);
  for (int step = 0; step < steps; ++step) {
    wait_copies<Tile::kStages - 2>();
    barrier();  // all threads have this step, and none reads the stage that is filled next
    stage(step + Tile::kStages - 1);
    const u32 from = stages + static_cast<u32>(step % Tile::kStages * Tile::kStageBytes);
    multiply_step<Tile, T>(sums, from, from + Tile::kRows * kStepBytes);
  }
}

// store(row, out, first, second) for every two neighbours of this thread; `out` is even.
template <class Tile, class Store>
RB_DEVICE void each_pair(int row0, int out0, const float (&sums)[Tile::kM][Tile::kN][4],
                         const Store& store) {
  const int lane = static_cast<int>(thread_x()) % 32;
  const int warp = static_cast<int>(thread_x()) / 32;
  row0 += warp % Tile::kWarpsM * (Tile::kM * 16) + lane / 4;
  out0 += warp / Tile::kWarpsM * (Tile::kN * 8) + lane % 4 * 2;
#pragma unroll
  for (int m = 0; m < Tile::kM; ++m) {
#pragma unroll
    for (int n = 0; n < Tile::kN; ++n) {
      const float(&part)[4] = sums[m][n];
      store(row0 + m * 16, out0 + n * 8, part[0], part[1]);
      store(row0 + m * 16 + 8, out0 + n * 8, part[2], part[3]);
    }
  }
}

template <class Tile, class Y>
RB_DEVICE void store_tile(const GemmParams& p, int row0, int out0,
                          const float (&sums)[Tile::kM][Tile::kN][4]) {
  each_pair<Tile>(row0, out0, sums, [&](int row, int out, float first, float second) {
    store_pair<Y>(p, row, out, first, second);
  });
}

template <class Tile>
RB_DEVICE void store_results(const GemmParams& p, int row0, int out0,
                             const float (&sums)[Tile::kM][Tile::kN][4]) {
  if (p.y_type == 0) {
    store_tile<Tile, float>(p, row0, out0, sums);
  } else if (p.y_type == 1) {
    store_tile<Tile, f16>(p, row0, out0, sums);
  } else {
    store_tile<Tile, bf16>(p, row0, out0, sums);
  }
}

}  // namespace gpu
}  // namespace rbee
