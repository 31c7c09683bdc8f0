#pragma once
// The checks of linear layers' operands; each throws invalid_argument in the name of `op`.

#include "rbee/ops/linear.h"

namespace rbee {

void check_linear_input(const char* op, const Tensor& x);
void check_linear_weights(const char* op, const Tensor& x, const LinearWeights& layer);

}  // namespace rbee
