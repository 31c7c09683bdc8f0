#pragma once
// The checks of linear layers' operands; each throws invalid_argument in the name of `op`.

#include "rbee/ops/fused_linear.h"

namespace rbee {

void check_linear_input(const char* op, const Tensor& x);
void check_linear_weights(const char* op, const Tensor& x, const LinearWeights& layer);
void check_linear_norm(const char* op, const LinearInput& input);

}  // namespace rbee
