#pragma once
// Products of two activations on matrix instructions, by the kernels of tensor_linear.h.

#include "backends/api/args_matmul.h"
#include "backends/api/device.h"
#include "backends/gpu/ops/tensor_linear.h"

namespace rbee::gpu {

// Null for f16, bf16 and f8e4m3, the last multiplied as f16. Operands that cannot be read along the
// depth in 16 bytes are rewritten; null only if the other operand has enough lines to pay for it.
const char* refuse_tensor_matmul(const MatmulArgs& args);
void run_tensor_matmul(const TensorTiles& tiles, const MatmulArgs& args, Stream& stream);

}  // namespace rbee::gpu
