#pragma once
// y = x * weight^T + bias for many rows, on matrices of 8 x 8. A block stages a step of both
// operands' depth in shared memory, block types dequantised, and four waves multiply it.
//
// Operands are staged as f16 where x and the weight are f16, e4m3 or a block type under x in f16;
// all else as float, which rounds nothing: Metal 3.0 has no matrices of bf16.

#include "backends/gpu/kernels/gemm_order.h"
#include "backends/gpu/kernels/linear_tiles.h"
#include "backends/metal/kernels/simdgroup_runs.h"
#include "backends/shared/packed_weight.h"

namespace rbee {
namespace gpu {

constexpr int kLinearThreads = 128;  // four waves, two along the rows and two along the outputs
constexpr int kLinearOuts = 64;      // of a block's tile

// How operands of type S lie in shared memory: lines of 64 bytes, and 16 between them, so that the
// lines of a matrix begin in different banks.
template <class S>
struct Staged {
  static constexpr int kDepth = 64 / static_cast<int>(sizeof(S));
  static constexpr int kPitch = 80 / static_cast<int>(sizeof(S));
  static constexpr int kRuns = kDepth / kStagedRun;  // in a line
};

// Lines of a plain type; runs begin on multiples of their size, or of 16 bytes.
template <class T>
struct PlainRuns {
  const T* data;
  i64 depth;
  template <class S>
  RB_DEVICE void read(i64 line, i64 k, RunWords<S>& to) const {
    RunWords<T> run;
    run.load(data + line * depth + k);
    if constexpr (SameType<S, T>::value) {
#pragma unroll
      for (int i = 0; i < RunWords<T>::kWords; ++i) to.words[i] = run.words[i];
    } else {
      float values[kStagedRun];
#pragma unroll
      for (int i = 0; i < kStagedRun; ++i) values[i] = load_value(element<T>(run.words, i));
      set_run(to, values);
    }
  }
};

// Rows of a packed weight.
template <class Block>
struct PackedRuns {
  const u8* data;
  PackedLayout layout;
  template <class S>
  RB_DEVICE void read(i64 line, i64 k, RunWords<S>& to) const {
    const u8* row = data + line * layout.row_bytes;
    const PackedScale scale = packed_scale<Block>(row, layout, k / 32);
    const bool second = k / 16 % 2 != 0;
    const BlockScale chosen{second ? scale.d[1] : scale.d[0], second ? scale.m[1] : scale.m[0]};
    float values[kStagedRun];
#pragma unroll
    for (int word = 0; word < kStagedRun / 4; ++word) {
      const u32 codes = packed_codes<Block>(row, layout, k + 4 * word);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        values[4 * word + j] = apply_scale(chosen, packed_quant<Block>(codes, j));
      }
    }
    set_run(to, values);
  }
};

// A step of kLines lines of an operand from line0 on; 0 beyond its ends.
template <int kLines, class S, class Runs>
RB_DEVICE void stage_runs(S* to, const Runs& runs, int line0, int lines, int k0, int depth) {
  constexpr int kCount = kLines * Staged<S>::kRuns;
#pragma unroll
  for (int first = 0; first < kCount; first += kLinearThreads) {
    const int run = first + static_cast<int>(thread_x());
    const int line = run / Staged<S>::kRuns;
    const int k = run % Staged<S>::kRuns * kStagedRun;
    RunWords<S> words;
    words.clear();
    if (line0 + line < lines && k0 + k < depth) runs.read(line0 + line, k0 + k, words);
    if (kCount % kLinearThreads == 0 || run < kCount)
      words.store(to + line * Staged<S>::kPitch + k);
  }
}

// A wave's results: kDown x 4 matrices.
template <int kDown>
struct WaveSums {
  FloatMatrix sums[kDown][4];
  RB_DEVICE WaveSums() {
#pragma unroll
    for (int i = 0; i < kDown; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) sums[i][j] = rb_metal_matrix_zero();
    }
  }
  // x and weight: the wave's first lines in shared memory.
  template <class S>
  RB_DEVICE void multiply(const S* x, const S* weight) {
    constexpr u32 kPitch = Staged<S>::kPitch;
#pragma unroll
    for (int k = 0; k < Staged<S>::kDepth; k += 8) {
      decltype(load_matrix(x, kPitch)) a[kDown], b[4];
#pragma unroll
      for (int i = 0; i < kDown; ++i) a[i] = load_matrix(x + 8 * i * kPitch + k, kPitch);
#pragma unroll
      for (int j = 0; j < 4; ++j) b[j] = load_transposed(weight + 8 * j * kPitch + k, kPitch);
#pragma unroll
      for (int i = 0; i < kDown; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[i][j] = multiply_add(a[i], b[j], sums[i][j]);
      }
    }
  }
  // to: the wave's first result in shared memory.
  RB_DEVICE void store(float* to) const {
#pragma unroll
    for (int i = 0; i < kDown; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        rb_metal_matrix_store(sums[i][j], to + 8 * (i * kLinearOuts + j), kLinearOuts);
      }
    }
  }
};

// S: what operands are staged as; X: the type of x, bias and y.
template <class S, class X, int kRows, class Runs>
RB_DEVICE void simdgroup_linear(const LinearParams& p, const Runs& weight) {
  constexpr int kStaged = (kRows + kLinearOuts) * 80;
  constexpr int kResults = kRows * kLinearOuts * 4;
  constexpr int kDown = kRows / 16;
  alignas(16) RB_SHARED u8 memory[kStaged > kResults ? kStaged : kResults];
  S* const x_lines = reinterpret_cast<S*>(memory);
  S* const weight_lines = x_lines + kRows * Staged<S>::kPitch;
  float* const results = reinterpret_cast<float*>(memory);

  const int rows = static_cast<int>(p.rows), outs = static_cast<int>(p.outs);
  const int depth = static_cast<int>(p.depth);
  const TilePlace place = tile_place<kRows, kLinearOuts>(block_x(), rows, outs);
  const PlainRuns<X> x{static_cast<const X*>(p.x), p.depth};
  const int wave = static_cast<int>(thread_x()) / (kLinearThreads / 4);
  const int row = wave / 2 * (kRows / 2), out = wave % 2 * (kLinearOuts / 2);
  WaveSums<kDown> sums;
  for (int k0 = 0; k0 < depth; k0 += Staged<S>::kDepth) {
    stage_runs<kRows>(x_lines, x, place.row, rows, k0, depth);
    stage_runs<kLinearOuts>(weight_lines, weight, place.out, outs, k0, depth);
    barrier();
    sums.multiply(x_lines + row * Staged<S>::kPitch, weight_lines + out * Staged<S>::kPitch);
    barrier();
  }
  sums.store(results + row * kLinearOuts + out);
  barrier();
  const StoreWithBias<X> store{static_cast<X*>(p.y), static_cast<const X*>(p.bias), p.y_row};
  for (int i = static_cast<int>(thread_x()); i < kRows * kLinearOuts; i += kLinearThreads) {
    const int r = place.row + i / kLinearOuts, o = place.out + i % kLinearOuts;
    if (r < rows && o < outs) store(r, o, results[i]);
  }
}

template <class S, class X, int kRows, class W>
RB_DEVICE void simdgroup_plain(const LinearParams& p) {
  simdgroup_linear<S, X, kRows>(p, PlainRuns<W>{static_cast<const W*>(p.weight), p.depth});
}
template <class S, class X, int kRows, class Block>
RB_DEVICE void simdgroup_packed(const LinearParams& p) {
  simdgroup_linear<S, X, kRows>(
      p, PackedRuns<Block>{static_cast<const u8*>(p.weight), packed_layout<Block>(p.depth)});
}

// Tiles of 64 rows and of 32.
#define RB_SIMDGROUP(body, S, x, X, weight, W)                                     \
  RB_KERNEL(linear_simdgroup_##x##_##weight##_large, kLinearThreads, LinearParams, \
            (body<S, X, 64, W>(p)))                                                \
  RB_KERNEL(linear_simdgroup_##x##_##weight##_small, kLinearThreads, LinearParams, \
            (body<S, X, 32, W>(p)))
#define RB_SIMDGROUP_PACKED(weight, Block)                         \
  RB_SIMDGROUP(simdgroup_packed, float, f32, float, weight, Block) \
  RB_SIMDGROUP(simdgroup_packed, f16, f16, f16, weight, Block)     \
  RB_SIMDGROUP(simdgroup_packed, float, bf16, bf16, weight, Block)

}  // namespace gpu
}  // namespace rbee
