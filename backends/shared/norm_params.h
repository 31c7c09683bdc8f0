#pragma once

#include "backends/shared/rows.h"
#include "backends/shared/strided_params.h"

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

struct LayerNormParams {
  const void* x;
  const void* weight;  // null: 1
  const void* bias;    // null: 0
  void* y;
  Rows x_rows, y_rows;
  i64 weight_step, bias_step;
  i64 rows, dim;
  float eps;
};

// One group of one image is the space of y, x, weight and bias; the others begin some strides on.
struct GroupNormParams {
  const void* x;
  const void* weight;  // null: 1
  const void* bias;    // null: 0
  void* y;
  // Count, mean and sum of squared deviations of each part of each group, in the kernel's
  // arithmetic; null when a block takes a whole group.
  void* moments;
  Strided<4> space;
  i64 image_strides[4], group_strides[4];  // elements, in the order of the space
  u32 groups;                              // of an image
  u32 parts, first_part, all_parts;        // of a group: of the space, before it, of the whole
  u32 tiles;                               // that a part takes, one after another
  float eps;
};

}  // namespace shared
}  // namespace rbee
