#pragma once
// Products on matrix instructions: the host's code that the vendors' kernels share.

#include "backends/api/args_matmul.h"
#include "backends/api/device.h"
#include "backends/gpu/driver.h"
#include "backends/shared/product_params.h"

namespace rbee::gpu {

struct TensorTile {
  const char* name;
  int64_t rows, outs;  // of y
  uint32_t threads;
  uint32_t shared_bytes;
};

// Kernels gemm_<type>_<tile's name> in `family`, each taking shared::GemmParams.
struct TensorTiles {
  const char* family;
  // Large tiles are taken if they keep all of the device busy.
  TensorTile large, small;
};

// 128 x 128 results by 256 threads, and 64 x 64 by 128. line_bytes: dynamic shared memory for each
// row of x and of the weight.
constexpr TensorTiles square_tiles(const char* family, uint32_t line_bytes) {
  return {.family = family,
          .large = {.name = "large",
                    .rows = 128,
                    .outs = 128,
                    .threads = 256,
                    .shared_bytes = 256 * line_bytes},
          .small = {.name = "small",
                    .rows = 64,
                    .outs = 64,
                    .threads = 128,
                    .shared_bytes = 128 * line_bytes}};
}

// The number of blocks that run without sharing hardware: one on each of NVIDIA's
// multiprocessors and CDNA's compute units. RDNA spreads the waves of a block over the four SIMDs
// of a work-group processor, which is two compute units: our code is made for that mode
// (.workgroup_processor_mode of its metadata), so half as many blocks keep all of it busy.
int64_t block_places(const Properties& device);

struct TensorProduct {
  const char* op;
  DType type;  // f16 or bf16, of x and the weight
  shared::GemmParams params;
  int64_t matrices = 1;  // 65,535 at most
};
void launch_tensor_product(const TensorTiles& tiles, const TensorProduct& product, Stream& stream);

// Linear layers. Null for more than 8 rows that can be read 16 bytes at a time; else the reason.
const char* refuse_tensor_shapes(const LinearArgs& args);
// Null if also weights are f16 or bf16, and x is of their type; y may have another.
const char* refuse_tensor_linear(const LinearArgs& args);
void run_tensor_linear(const TensorTiles& tiles, const LinearArgs& args, Stream& stream);

}  // namespace rbee::gpu
