#include "backends/cuda/ops/image_conv_mma.h"

#include "backends/gpu/ops/image_conv.h"

namespace rbee::cuda {
namespace {

// As in kernels/mma_tiles.h: four stages of 64 bytes of each row.
constexpr gpu::TensorTiles kMma = gpu::square_tiles("image_conv_mma", 4 * 64);

void run_mma(const ImageConvArgs& args, Stream& stream) {
  gpu::run_tensor_image_conv(kMma, args, stream);
}

}  // namespace

const Impl<ImageConvArgs> image_conv_mma{"mma", gpu::refuse_tensor_image_conv, run_mma};

}  // namespace rbee::cuda
