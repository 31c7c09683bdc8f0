#include "backends/cuda/ops/image_conv_mma.h"

#include "backends/gpu/ops/image_conv.h"

namespace rbee::cuda {
namespace {

// As in kernels/mma_tiles.h: four stages of 64 bytes of each row.
constexpr gpu::TensorTiles kMma{.family = "image_conv_mma",
                                .large = {.name = "large",
                                          .rows = 128,
                                          .outs = 128,
                                          .threads = 256,
                                          .shared_bytes = 4 * (128 + 128) * 64},
                                .small = {.name = "small",
                                          .rows = 64,
                                          .outs = 64,
                                          .threads = 128,
                                          .shared_bytes = 4 * (64 + 64) * 64}};

void run_mma(const ImageConvArgs& args, Stream& stream) {
  gpu::run_tensor_image_conv(kMma, args, stream);
}

}  // namespace

const Impl<ImageConvArgs> image_conv_mma{"mma", gpu::refuse_tensor_image_conv, run_mma};

}  // namespace rbee::cuda
