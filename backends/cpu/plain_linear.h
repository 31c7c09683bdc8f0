#pragma once
// linear in f32 with unpacked weights, (out, in): for adapters, which come and go.

#include <cstdint>

#include "backends/api/args_matmul.h"
#include "backends/api/impl.h"

namespace rbee::cpu {

// y[r * y_stride + o] = x[r] * weight[o], with rows of `in` adjacent numbers.
struct DotProducts {
  const float* x;  // (rows, in)
  int64_t rows;
  const float* weight;  // (outs, in)
  int64_t outs;
  int64_t in;
  float* y;
  int64_t y_stride;
};
// An instruction set's version, on the caller's thread.
extern void (*const avx2_dot_products)(const DotProducts&);
extern void (*const avx512_dot_products)(const DotProducts&);
extern void (*const neon_dot_products)(const DotProducts&);

extern const Impl<LinearArgs> avx2_plain_linear, avx512_plain_linear, neon_plain_linear;

}  // namespace rbee::cpu
