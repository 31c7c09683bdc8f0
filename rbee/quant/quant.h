#pragma once
// Rows of block formats to and from float32, for all types of rbee/core/block_types.h. Layouts and
// the value of each element: quant_blocks.h and code_book_blocks.h in backends/shared.
//
// Both functions are pure, allocate nothing but tables of types with code books at their first use,
// are safe to call from many threads, and give the same bits on every machine. `blocks` needs no
// alignment. They throw Error(invalid_argument) if dtype is not a block type or n is not a multiple
// of its block size.

#include <cstdint>

#include "rbee/core/dtype.h"

namespace rbee::quant {

// Decodes n elements from row_bytes(dtype, n) bytes. Every bit pattern of a block is defined;
// infinite or NaN scales give infinities and NaNs.
void dequantize_row(DType dtype, const void* blocks, float* out, int64_t n);

// Encodes n elements into row_bytes(dtype, n) bytes.
//
// q4_0, q4_1, q5_0, q5_1, q8_0 and mxfp4 follow ggml's reference rounding; f8_g128 makes the
// largest magnitude 448 and rounds to nearest even. The others, and but for q8_0 also the first if
// `importance` is given, search for the block with the least
//   sum of importance[i] * (in[i] - decoded[i])^2
// where `importance` has n values (an "imatrix": usually the mean square of the activation of each
// column); null means 1 for all. Values that are not positive and finite count as the smallest
// weight. q8_0, q8_k and f8_g128 do not use it.
//
// NaN in `in` counts as zero. Magnitudes beyond what the type's scale can hold, infinities
// included, count as that limit, so what is decoded from the result is always finite. The limit is
// 65504, the largest half, times 8 for q4_0, 16 for q5_0 and 127 for q8_0; 2^127 for q8_k,
// mxfp4 and f8_g128; 2688 for nvfp4; and 65504 for the others.
void quantize_row(DType dtype, const float* in, void* blocks, int64_t n,
                  const float* importance = nullptr);

}  // namespace rbee::quant
