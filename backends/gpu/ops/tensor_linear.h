#pragma once
// Linear layers on matrix instructions: what the vendors' kernels have in common on the host.

#include "backends/api/args_matmul.h"
#include "backends/api/device.h"

namespace rbee::gpu {

struct TensorTile {
  const char* name;
  int64_t rows, outs;  // of y
  uint32_t threads;
  uint32_t shared_bytes;
};

// Kernels gemm_<type of x>[_<type of weight>]_<tile's name>, each taking shared::GemmParams, in
// `family` for operands of one type and in gemm_convert_<type of x> for others.
struct TensorTiles {
  const char* family;
  // Large tiles are taken where they keep all of the device busy.
  TensorTile large, small;
};

// Null for more than 8 rows and weights that are not f32 or f64, whose rows can be read 16 bytes at
// a time; else why not. f32 inputs are rounded to the weight's type, or bf16 for packed weights and
// f8.
const char* refuse_tensor_linear(const LinearArgs& args);
void run_tensor_linear(const TensorTiles& tiles, const LinearArgs& args, Stream& stream);

}  // namespace rbee::gpu
