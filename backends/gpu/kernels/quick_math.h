#pragma once
// Activations with results rounded to 16 bits: without branches, by the hardware's exponential
// and reciprocal. Relative errors are below 2^-17, those of the rounding 2^-12 and more.

#include "backends/gpu/instructions.h"

namespace rbee {
namespace gpu {

RB_DEVICE float quick_sigmoid(float x) {
  constexpr float kLog2E = 1.44269504f;
  return fast_reciprocal(1.0f + fast_exp2(-kLog2E * x));
}

RB_DEVICE float quick_silu(float x) {
  return x * quick_sigmoid(x);
}

// As gelu() of backends/shared/scalar.h.
RB_DEVICE float quick_gelu_tanh(float x) {
  return x * quick_sigmoid(1.59576912f * (x + 0.044715f * x * x * x));
}

// x * normcdf(x). The share above |x| is e^(-x^2 / 2) * t * p(t) for t = 1 / (1 + z / 2) and z =
// |x| / sqrt(2), p fitted to erfc(z) * e^(z^2) / (2 t): relative error 2e-6 up to |x| = 6.
RB_DEVICE float quick_gelu_erf(float x) {
  const float magnitude = x < 0.0f ? -x : x;
  const float t = fast_reciprocal(1.0f + 0.353553391f * magnitude);
  float p = 0.0472818054f;
  p = p * t - 0.189522669f;
  p = p * t + 0.210163295f;
  p = p * t + 0.00799469464f;
  p = p * t + 0.144822672f;
  p = p * t + 0.138042286f;
  p = p * t + 0.141218096f;
  const float above = fast_exp2(-0.721347520f * x * x) * t * p;
  return x * (x < 0.0f ? above : 1.0f - above);
}

}  // namespace gpu
}  // namespace rbee
