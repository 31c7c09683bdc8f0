#include "backends/rocm/ops/image_conv_matrix.h"

#include "backends/gpu/ops/image_conv.h"

namespace rbee::rocm {
namespace {

// As in kernels/gemm_matrix.h and gemm_dot.h, which declare their shared memory themselves.
constexpr gpu::TensorTiles kTiles = gpu::square_tiles("image_conv_matrix", 0);

void run(const ImageConvArgs& args, Stream& stream) {
  gpu::run_tensor_image_conv(kTiles, args, stream);
}

}  // namespace

const Impl<ImageConvArgs> image_conv_mfma{"mfma", gpu::refuse_tensor_image_conv, run};
const Impl<ImageConvArgs> image_conv_wmma{"wmma", gpu::refuse_tensor_image_conv, run};
const Impl<ImageConvArgs> image_conv_dot{"dot", gpu::refuse_tensor_image_conv, run};

}  // namespace rbee::rocm
