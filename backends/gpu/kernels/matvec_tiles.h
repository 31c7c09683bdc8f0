#pragma once
// Shared by mat-vec kernels of plain and of packed weights: the waves' work, and the step from
// their sums to y. A wave works on kOuts rows of a weight at a time for kBatch rows of x, alone or
// as one of `split` waves that cut these rows.
#include "backends/gpu/portable.h"
#include "backends/shared/matvec_params.h"

namespace rbee {
namespace gpu {

template <int kWave, int kOuts, int kBatch>
struct MatvecTile {
  static constexpr int kWaves = kMatvecThreads / kWave;
  static constexpr int kSums = kOuts * kBatch;  // one for each lane, or fewer
  static_assert(kSums <= kWave, "a lane writes one sum");

  MatvecPart part;
  i64 first_out;
  int lane, wave, slice;

  template <class Params>
  RB_DEVICE explicit MatvecTile(const Params& p) {
    part = p.parts[0];
    // Unrolled: if parameters are indexed at run time, compilers do not see that pointers lead
    // to device memory, and use slower loads.
#pragma unroll
    for (int i = 1; i < kMatvecParts; ++i) {
      if (i < p.part_count && block_x() >= p.parts[i].first_block) part = p.parts[i];
    }
    lane = static_cast<int>(thread_x()) % kWave;
    wave = static_cast<int>(thread_x()) / kWave;
    slice = wave % p.split;
    const i64 block = block_x() - part.first_block;
    first_out = (block * (kWaves / p.split) + wave / p.split) * kOuts;
  }

  template <class T>
  RB_DEVICE const T* weight() const {
    return static_cast<const T*>(part.weight);
  }
  template <class T>
  RB_DEVICE const T* bias() const {
    return static_cast<const T*>(part.bias);
  }
  template <class T>
  RB_DEVICE T* y() const {
    return static_cast<T*>(part.y);
  }

  // The weight's row number `i` of this tile; past the end the last one, whose sum is not used.
  RB_DEVICE i64 out(int i) const {
    return first_out + i < part.outs ? first_out + i : part.outs - 1;
  }

  // y = the sums of all slices + bias. All threads of the block call it.
  template <class Store>
  RB_DEVICE void finish(const float (&sums)[kOuts][kBatch], int rows, int split,
                        const Store& store) const {
    RB_SHARED float partial[kWaves * kSums];
    float mine = 0;
#pragma unroll
    for (int i = 0; i < kSums; ++i) {
      const float sum = wave_sum<kWave>(sums[i / kBatch][i % kBatch]);
      mine = lane == i ? sum : mine;
    }
    if (lane < kSums) partial[wave * kSums + lane] = mine;
    barrier();
    const i64 out = first_out + lane / kBatch;
    const int row = lane % kBatch;
    if (slice != 0 || lane >= kSums || out >= part.outs || row >= rows) return;
    for (int i = 1; i < split; ++i) mine += partial[(wave + i) * kSums + lane];
    store(row * part.outs + out, out, mine);
  }
};

}  // namespace gpu
}  // namespace rbee
