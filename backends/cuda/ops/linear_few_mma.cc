#include "backends/cuda/ops/linear_few_mma.h"

#include <algorithm>

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/ops/matvec_parts.h"
#include "backends/shared/matvec_mma_params.h"

namespace rbee::cuda {
namespace {

using shared::kMatvecThreads;

// As in kernels/matvec_mma.cu.
constexpr int64_t kMostRows = 16;
constexpr int64_t kTile = 16;   // rows of a weight
constexpr int64_t kChunk = 32;  // elements of a row
constexpr int64_t kWaves = kMatvecThreads / 32;

const char* refuse(const LinearArgs& args) {
  const View& x = args.x;
  if (x.size(0) < 2 || x.size(0) > kMostRows) return "takes 2 to 16 rows";
  if (x.size(1) == 0 || x.size(1) % 8 != 0) return "takes a depth in multiples of 8";
  if (!gpu::aligned(x.data)) return "reads x 16 bytes at a time";
  const DType type = args.parts[0].weight.dtype;
  if (type != DType::f16 && type != DType::bf16) return "takes f16 and bf16 weights";
  if (x.dtype != type && (x.dtype != DType::f32 || type != DType::bf16)) {
    return "x is neither of the weights' type nor f32 with bf16";
  }
  for (const LinearPart& part : args.parts) {
    if (part.weight.dtype != type) return "takes weights of one type";
    if (!gpu::aligned(part.weight.data)) return "reads weights 16 bytes at a time";
  }
  return nullptr;
}

// Two tiles of a warp share their reads of x, if there are enough tiles for all warps.
struct Shape {
  int64_t tiles;
  gpu::MatvecTiling tiling;
};

Shape shape_of(const gpu::Properties& device, int64_t outs, int64_t depth) {
  const int64_t busy = gpu::kBusyWaves * device.multiprocessors;
  const int64_t tiles = outs >= 2 * kTile * busy / kWaves ? 2 : 1;
  gpu::MatvecTiling tiling{.outs = tiles * kTile, .waves = kWaves};
  const int64_t groups = (outs + tiling.outs - 1) / tiling.outs;
  const int64_t trips = depth / (kChunk * 4 / tiles);
  while (2 * tiling.split <= tiling.waves && groups * tiling.split < busy &&
         trips >= 2 * tiling.split) {
    tiling.split *= 2;
  }
  return {tiles, tiling};
}

void run(const LinearArgs& args, Stream& stream) {
  const View& x = args.x;
  const DType weight = args.parts[0].weight.dtype;
  const auto [tiles, tiling] =
      shape_of(gpu::device_of(stream).properties(), gpu::outs_of(args, weight), x.size(1));
  gpu::KernelName kernel("matvec_mma", x.dtype, name(weight));
  kernel.part(tiles == 1 ? "t1" : "t2").part(x.size(0) <= 8 ? "n1" : "n2");
  const shared::MatvecMmaParams params{.x = x.data,
                                       .in = x.size(1),
                                       .rows = static_cast<int32_t>(x.size(0)),
                                       .split = static_cast<int32_t>(tiling.split),
                                       .part_count = 0,
                                       .parts = {}};
  gpu::launch_parts(args, weight, tiling, params,
                    [&](const shared::MatvecMmaParams& filled, uint32_t blocks) {
                      gpu::launch(stream,
                                  {.op = "linear",
                                   .family = "matvec_mma",
                                   .kernel = kernel,
                                   .grid = {.x = blocks},
                                   .threads = kMatvecThreads,
                                   .writes = gpu::Writes::floats},
                                  filled);
                    });
}

}  // namespace

const Impl<LinearArgs> linear_few_mma{"mma_few", refuse, run};

}  // namespace rbee::cuda
