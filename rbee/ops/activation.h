#pragma once

#include "backends/api/args_elementwise.h"
#include "rbee/tensor/tensor.h"

namespace rbee {

// act(gate) * up; gate, up: (rows, dim) of one dtype, rows may be strided
Tensor gated(GateOp op, const Tensor& gate, const Tensor& up);

}  // namespace rbee
