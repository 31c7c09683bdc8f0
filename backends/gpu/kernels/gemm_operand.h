#pragma once
// The operands of products on matrix units: see shared::GemmParams.

#include "backends/gpu/portable.h"
#include "backends/shared/product_params.h"

namespace rbee {
namespace gpu {

// A matrix (lines, depth) of a 16-bit type, whose lines begin on multiples of 16 bytes.
struct Operand {
  const void* data;
  int lines, depth;
  int pitch;  // elements between lines
};

// Without gaps.
RB_DEVICE Operand dense_operand(const void* data, int lines, int depth) {
  return {data, lines, depth, depth};
}
RB_DEVICE Operand x_of(const GemmParams& p) {
  return {p.x, p.rows, p.depth, p.x_row};
}
RB_DEVICE Operand weight_of(const GemmParams& p) {
  return {p.weight, p.outs, p.depth, p.weight_row};
}

// The product of one of a launch's matrices.
RB_DEVICE GemmParams matrix_of(const GemmParams& all, u32 number) {
  GemmParams p = all;
  p.x = static_cast<const u8*>(all.x) + number * all.x_matrix;
  p.weight = static_cast<const u8*>(all.weight) + number * all.weight_matrix;
  p.y = static_cast<u8*>(all.y) + number * all.y_matrix;
  return p;
}

}  // namespace gpu
}  // namespace rbee
