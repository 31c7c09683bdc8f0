#include "backends/metal/ops/image_conv_simdgroup.h"

#include "backends/gpu/ops/image_conv.h"

namespace rbee::metal {
namespace {

// As in kernels/simdgroup_image_conv.cu, which declares its shared memory itself.
constexpr gpu::TensorTiles kTiles{
    .family = "simdgroup_image_conv",
    .large = {.name = "large", .rows = 64, .outs = 64, .threads = 128, .shared_bytes = 0},
    .small = {.name = "small", .rows = 32, .outs = 64, .threads = 128, .shared_bytes = 0}};

void run(const ImageConvArgs& args, Stream& stream) {
  gpu::run_tensor_image_conv(kTiles, args, stream);
}

}  // namespace

const Impl<ImageConvArgs> image_conv_simdgroup{"simdgroup", gpu::refuse_tensor_image_conv, run};

}  // namespace rbee::metal
