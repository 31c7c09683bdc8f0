#include "backends/metal/ops/matmul_simdgroup.h"

#include <algorithm>

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/ops/matmul.h"
#include "backends/gpu/product_tiles.h"
#include "backends/gpu/rows.h"

namespace rbee::metal {
namespace {

constexpr uint32_t kThreads = 128;  // as in kernels/simdgroup_product.h
constexpr int64_t kMostSize = int64_t{1} << 30;

const char* refuse(const MatmulArgs& args) {
  const DType type = args.y.dtype;
  if (type != DType::f32 && type != DType::f16 && type != DType::bf16) {
    return "takes f32, f16 and bf16";
  }
  if (std::max({args.y.size(-2), args.y.size(-1), args.a.size(-1)}) > kMostSize) {
    return "more than 2^30 rows or columns";
  }
  if (!gpu::aligned(args.a.data) || !gpu::aligned(args.b.data)) {
    return "an operand is not 16-byte aligned";
  }
  return nullptr;
}

void run(const MatmulArgs& args, Stream& stream) {
  const int64_t tiles = gpu::product_tiles(args.y.size(-2), args.y.size(-1));
  gpu::launch(stream,
              {.op = "matmul",
               .family = "simdgroup_matmul",
               .kernel = gpu::KernelName("matmul_simdgroup", args.y.dtype),
               .grid = {.x = gpu::grid_for_tiles(tiles * gpu::matrices_of(args))},
               .threads = kThreads},
              gpu::matmul_params(args));
}

}  // namespace

const Impl<MatmulArgs> matmul_simdgroup{"simdgroup", refuse, run};

}  // namespace rbee::metal
