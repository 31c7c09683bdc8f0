#pragma once

#include "rbee/io/tensor_entry.h"
#include "rbee/tensor/tensor.h"

namespace rbee::nn {

// All elements of a tensor of a block type as f16 or bf16 in new memory, row-major, each rounded
// once. For tensors whose rows are not whole blocks. Uses all processors of the process.
io::TensorEntry dequantised(const io::TensorEntry& entry, DType dtype);

// x in q8_0, along the last axis. x must be contiguous, on a device that reads host memory.
Tensor quantized(const Tensor& x);

}  // namespace rbee::nn
