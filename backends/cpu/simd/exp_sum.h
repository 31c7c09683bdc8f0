#pragma once
// Sums of exponentials of a row, which top_k needs beside the largest elements.

#include <cstdint>

namespace rbee::cpu {

// Of e^(scale (x - top)) of the elements that are numbers above -infinity. `top` is above it too.
using ExpSum = float (*)(const float* x, int64_t n, float top, float scale);

extern const ExpSum avx2_exp_sum, avx512_exp_sum, neon_exp_sum;

}  // namespace rbee::cpu
