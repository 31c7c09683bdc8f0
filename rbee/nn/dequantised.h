#pragma once

#include "rbee/io/tensor_entry.h"
#include "rbee/tensor/tensor.h"

namespace rbee::nn {

// All elements of a tensor of a block type as f16 or bf16 in memory of their own, row-major in
// whatever shape, each rounded once: for tensors whose rows are no whole blocks. On all processors
// of the process.
io::TensorEntry dequantised(const io::TensorEntry& entry, DType dtype);

// Rows along the last axis in q8_0; x is contiguous, on a device that reads host memory.
Tensor quantized(const Tensor& x);

}  // namespace rbee::nn
