#pragma once

#include "backends/api/view.h"

namespace rbee {

// y = x / sqrt(mean(x^2) + eps) * weight, over the last axis (Zhang and Sennrich 2019)
struct RmsNormArgs {
  View x, weight, y;  // x, y: (..., dim)   weight: (dim)
  float eps = 1e-5f;
};

// sum = x + residual;  y = rms_norm(sum) * weight
struct AddRmsNormArgs {
  View x, residual, weight;  // x, residual: (rows, dim)   weight: (dim)
  View sum, y;               // (rows, dim)
  float eps = 1e-5f;
};

// y = (x - mean) / sqrt(var + eps) * weight + bias, over the last axis; weight, bias optional
struct LayerNormArgs {
  View x, weight, bias, y;
  float eps = 1e-5f;
};

// x: (batch, channels, spatial...), normalised over each group of channels
// weight, bias: (channels), optional
struct GroupNormArgs {
  View x, weight, bias, y;
  int32_t groups = 1;
  float eps = 1e-5f;
};

}  // namespace rbee
