#pragma once
// A tile of y = x * weight^T on matrices of 8 x 8. A block stages a step of both operands' depth in
// shared memory, in the form that `Runs` read, and four waves multiply it.
//
// S: what operands are staged as. f16 where both have no more bits than it, as block types have
// under x in f16; else float, which rounds nothing: Metal 3.0 has no matrices of bf16.

#include "backends/gpu/kernels/gemm_order.h"
#include "backends/gpu/kernels/linear_tiles.h"
#include "backends/metal/kernels/simdgroup_runs.h"
#include "backends/shared/packed_weight.h"

namespace rbee {
namespace gpu {

constexpr int kProductThreads = 128;  // four waves, two along the rows and two along the outputs
constexpr int kProductOuts = 64;      // of a block's tile

// How operands of type S lie in shared memory: lines of 64 bytes, and 16 between them, so that the
// lines of a matrix begin in different banks.
template <class S>
struct Staged {
  static constexpr int kDepth = 64 / static_cast<int>(sizeof(S));
  static constexpr int kPitch = 80 / static_cast<int>(sizeof(S));
  static constexpr int kRuns = kDepth / kStagedRun;  // in a line
};

// Eight neighbours of a plain type, on a multiple of their size or of 16 bytes.
template <class S, class T>
RB_DEVICE void read_plain(const T* from, RunWords<S>& to) {
  RunWords<T> run;
  run.load(from);
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

// Lines of a plain type.
template <class T>
struct PlainRuns {
  const T* data;
  i64 depth;
  RB_DEVICE bool across() const { return false; }
  template <class S>
  RB_DEVICE void read(i64 line, i64 k, RunWords<S>& to) const {
    read_plain(data + line * depth + k, to);
  }
};

// Rows of a packed weight.
template <class Block>
struct PackedRuns {
  const u8* data;
  PackedLayout layout;
  RB_DEVICE bool across() const { return false; }
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

// A step of kLines lines of an operand from line0 on; 0 beyond its ends. Neighbouring threads read
// along the depth, or where runs.across() along the lines.
template <int kLines, class S, class Runs>
RB_DEVICE void stage_runs(S* to, const Runs& runs, int line0, int lines, int k0, int depth) {
  constexpr int kCount = kLines * Staged<S>::kRuns;
#pragma unroll
  for (int first = 0; first < kCount; first += kProductThreads) {
    const int run = first + static_cast<int>(thread_x());
    const bool across = runs.across();
    const int line = across ? run % kLines : run / Staged<S>::kRuns;
    const int k = (across ? run / kLines : run % Staged<S>::kRuns) * kStagedRun;
    RunWords<S> words;
    words.clear();
    if (line0 + line < lines && k0 + k < depth) runs.read(line0 + line, k0 + k, words);
    if (kCount % kProductThreads == 0 || run < kCount)
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
        rb_metal_matrix_store(sums[i][j], to + 8 * (i * kProductOuts + j), kProductOuts);
      }
    }
  }
};

// A tile's first result and the extents of its product.
struct ProductPlace {
  int row, out;
  int rows, outs, depth;
};

// store(row, out, sum) for each result of the tile of kRows rows; all threads of the block call it.
template <class S, int kRows, class XRuns, class WeightRuns, class Store>
RB_DEVICE void simdgroup_product(const ProductPlace& place, const XRuns& x,
                                 const WeightRuns& weight, const Store& store) {
  constexpr int kStaged = (kRows + kProductOuts) * 80;
  constexpr int kResults = kRows * kProductOuts * 4;
  constexpr int kDown = kRows / 16;
  alignas(16) RB_SHARED u8 memory[kStaged > kResults ? kStaged : kResults];
  S* const x_lines = reinterpret_cast<S*>(memory);
  S* const weight_lines = x_lines + kRows * Staged<S>::kPitch;
  float* const results = reinterpret_cast<float*>(memory);
  const int wave = static_cast<int>(thread_x()) / (kProductThreads / 4);
  const int row = wave / 2 * (kRows / 2), out = wave % 2 * (kProductOuts / 2);
  WaveSums<kDown> sums;
  for (int k0 = 0; k0 < place.depth; k0 += Staged<S>::kDepth) {
    stage_runs<kRows>(x_lines, x, place.row, place.rows, k0, place.depth);
    stage_runs<kProductOuts>(weight_lines, weight, place.out, place.outs, k0, place.depth);
    barrier();
    sums.multiply(x_lines + row * Staged<S>::kPitch, weight_lines + out * Staged<S>::kPitch);
    barrier();
  }
  sums.store(results + row * kProductOuts + out);
  barrier();
  for (int i = static_cast<int>(thread_x()); i < kRows * kProductOuts; i += kProductThreads) {
    const int r = place.row + i / kProductOuts, o = place.out + i % kProductOuts;
    if (r < place.rows && o < place.outs) store(r, o, results[i]);
  }
}

}  // namespace gpu
}  // namespace rbee
