#pragma once
// Linear layers of few rows on matrix units: blocks read a weight once for all rows, and share
// the depth if tiles are few.

#include <cstdint>

#include "backends/api/args_matmul.h"
#include "backends/gpu/launch.h"
#include "backends/gpu/ops/matvec_parts.h"

namespace rbee::gpu {

// A vendor's kernels over FewRowsParams, PREFIX_<x>_<type of the weight>_n<rows of x / 8>.
struct FewRowsKernels {
  // Starts a kernel that takes more than FewRowsParams. x: its type; rows: the kernel's number of
  // rows.
  using Start = void (*)(const Launch& launch, const shared::FewRowsParams& params, DType x,
                         int64_t rows, Stream& stream);
  const char* prefix;
  PackedFamilies families;
  const char* plain;      // the family for weights of x's type; null: there is none
  int64_t outs;           // rows of a weight in a tile
  uint32_t threads;       // of a block
  int64_t blocks;         // of a multiprocessor that keep its memory busy
  bool ring;              // they copy to a ring of stages in dynamic shared memory
  Start start = nullptr;  // null: launch()
};

// Null for 5 to 64 rows of f32, f16 or bf16 and weights of block types in planes; else the reason.
const char* refuse_few_packed(const LinearArgs& args);
void run_few_packed(const FewRowsKernels& kernels, const LinearArgs& args, Stream& stream);

// Null for 9 to 64 rows of f16 or bf16 and weights of the same type, whose rows are of whole 16
// bytes; else the reason.
const char* refuse_few_plain(const LinearArgs& args);
void run_few_plain(const FewRowsKernels& kernels, const LinearArgs& args, Stream& stream);

// The same followed by a norm, which the adding kernel applies: for rows of whole 16
// bytes, at most 16,384 in 16 bits and 8,192 in f32.
const char* refuse_few_packed_norm(const LinearNormArgs& args);
void run_few_packed_norm(const FewRowsKernels& kernels, const LinearNormArgs& args, Stream& stream);
const char* refuse_few_plain_norm(const LinearNormArgs& args);
void run_few_plain_norm(const FewRowsKernels& kernels, const LinearNormArgs& args, Stream& stream);

// y = bias + sums of the splits, of `dtype`.
void add_up(const shared::FewRowsParams& params, DType dtype, Stream& stream);
// y = bias + sums of parts of the depth, which are in f32 as FewRowsParams describes, in tiles of
// `outs`.
struct FewParts {
  float* partials;
  int64_t rows, outs, splits;
};
void add_up_parts(const FewParts& parts, const LinearPart& to, Stream& stream);

}  // namespace rbee::gpu
