#pragma once
// Linear layers of many rows on packed weights; the copy engine (TMA) fetches x.

#include "backends/shared/matvec_params.h"
#include "backends/shared/tensor_map_params.h"

namespace rbee {
namespace shared {

// Linear layers of many rows of x in 16 bits and packed weights (cuda/kernels/gemm_packed.h):
// FewRowsParams, in tiles of kPackedOuts. x's elements are in the order in which lanes hold the
// weights' (ArrangeXParams). A cluster of two blocks computes pairs of tiles that share their rows.
// All clusters must fit on the device at once; the last ones may start after others have ended.
enum { kPackedOuts = 128, kPackedThreads = 3 * 128 };
struct PackedGemmParams {
  TensorMap x;  // (in, rows, 1, 1)
  FewRowsParams few;
  i32 row_tiles;  // of x
  i32 units;      // pairs of tiles * row_tiles * in / 128, shared out evenly to clusters
  // If a share begins inside a tile, the partial sums of that tile: (clusters, 2 blocks, outputs *
  // rows of x of a tile), and for each of a block's two warpgroups a word that marks them as
  // written, 0 before and after.
  float* partials;
  u32* arrivals;
};
// Stages of a step of 64 elements of so many rows of x, beside kPackedStages of a unit of a tile's
// weights, `unit` bytes, and a code book.
enum { kPackedStages = 3, kPackedMostSteps = 8, kPackedRingBytes = 225 * 1024 };
RB_FN constexpr int packed_steps(int rows, int unit, int book) {
  return (kPackedRingBytes - book - kPackedStages * unit) / (rows * 128) < kPackedMostSteps
             ? (kPackedRingBytes - book - kPackedStages * unit) / (rows * 128)
             : kPackedMostSteps;
}

// x in the order in which a product of 16 elements takes what four lanes hold, 32 neighbours each:
// of each 128 elements, place 16 s + 8 h + 2 q + e has element 32 q + 4 s + 2 h + e.
enum { kArrangeXThreads = 256, kArrangeXEach = 8 };
struct ArrangeXParams {
  const void* x;   // (rows, in), contiguous, of 16-bit elements
  void* arranged;  // the same
  i64 rows, in;    // in: a multiple of 128
};

}  // namespace shared
}  // namespace rbee
