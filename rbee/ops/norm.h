#pragma once
// Normalisations. Results have x's dtype; statistics are taken in float.

#include <utility>

#include "rbee/tensor/tensor.h"

namespace rbee {

// x / sqrt(mean(x^2) + eps) * weight over the last axis (Zhang and Sennrich 2019)
//   x: (..., dim), rows may be strided   weight: (dim)
Tensor rms_norm(const Tensor& x, const Tensor& weight, float eps);

struct SumAndNorm {
  Tensor sum;   // x + residual
  Tensor norm;  // rms_norm(sum)
};
// x, residual: (rows, dim)   weight: (dim)
SumAndNorm add_rms_norm(const Tensor& x, const Tensor& residual, const Tensor& weight, float eps);

// (x - mean) / sqrt(var + eps) * weight + bias over the last axis; weight and bias may be undefined
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, float eps);

// x: (batch, channels, spatial...); channels in `groups` equal groups; weight, bias: (channels)
Tensor group_norm(const Tensor& x, int32_t groups, const Tensor& weight, const Tensor& bias,
                  float eps);

}  // namespace rbee
