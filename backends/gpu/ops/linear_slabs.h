#pragma once
// Linear layers of many rows on weights of another type than x. For packed weights and f8, converts
// a slab of the weight, at most kSlabBytes, and multiplies it like any weight, then the next slab.
// That costs less than converting operands for every tile of a product. x in f32 is multiplied by
// 16-bit weights in terms (SplitInput).

#include "backends/api/args_matmul.h"
#include "backends/api/impl.h"
#include "backends/gpu/lt_library.h"

namespace rbee::gpu {

inline constexpr int64_t kSlabBytes = int64_t{64} << 20;

// Rows first to first + outs of a weight (outs, in) in `type`, f16 or bf16; in `memory`, outs * in
// elements of it, if they have another type now.
View slab_of(const View& weight, int64_t first, int64_t outs, DType type, void* memory,
             Stream& stream);

// The multiplier of a slab: the library, if there is one that takes it, else the first kernel that
// does. All write rows of y that are y.stride(0) elements apart, since a slab's results are some
// columns of y.
struct SlabProducts {
  LtLibrary* library;
  Slot<LinearArgs> kernels;
};

// Null for more than 8 rows and weights that fit 16 bits, or f32 beside such under x in f32, at
// least one of another type than x; else the reason.
const char* refuse_linear_slabs(const LinearArgs& args);
void run_linear_slabs(const SlabProducts& products, const LinearArgs& args, Stream& stream);

}  // namespace rbee::gpu
