#pragma once
// Linear layers of few rows on packed weights, on matrix units: a weight is read once for all rows.

#include <cstdint>

#include "backends/api/args_matmul.h"
#include "backends/gpu/ops/matvec_parts.h"

namespace rbee::gpu {

// A vendor's kernels over FewPackedParams, PREFIX_<x>_<block type>_n<rows of x / 8>.
struct FewPackedKernels {
  const char* prefix;
  PackedFamilies families;
  int64_t outs;      // rows of a weight in a tile
  uint32_t threads;  // of a block
  int64_t blocks;    // that share a multiprocessor
  bool ring;         // they copy to a ring of stages in dynamic shared memory
};

// Null for 5 to 64 rows of f32, f16 or bf16 and weights of block types in planes; else why not.
const char* refuse_few_packed(const LinearArgs& args);
void run_few_packed(const FewPackedKernels& kernels, const LinearArgs& args, Stream& stream);

}  // namespace rbee::gpu
