#pragma once

#include "backends/shared/rows.h"

namespace rbee {
namespace shared {

// rms_norm, and with `residual` add_rms_norm: see backends/api/args_norm.h.
struct RmsNormParams {
  const void* x;
  const void* residual;  // null: none
  const void* weight;
  void* sum;  // x + residual; null without residual
  void* y;
  Rows x_rows, residual_rows, sum_rows, y_rows;
  i64 weight_step;
  i64 dim;
  float eps;
};

}  // namespace shared
}  // namespace rbee
