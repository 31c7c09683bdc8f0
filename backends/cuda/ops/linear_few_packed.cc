#include "backends/cuda/ops/linear_few_packed.h"

#include <algorithm>

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/ops/matvec_parts.h"
#include "backends/gpu/ops/pack_weight.h"

namespace rbee::cuda {
namespace {

using shared::kMatvecThreads;

// Below so many rows, products of rounded x with integers (linear_few) are as fast or faster.
constexpr int64_t kLeastRows = 5;
// As in kernels/matvec_mma_packed.h.
constexpr int64_t kMostRows = 64;
constexpr int64_t kOuts = 32;    // of a warp
constexpr int64_t kChunk = 128;  // elements of a row
constexpr int64_t kWaves = kMatvecThreads / 32;

const char* refuse(const LinearArgs& args) {
  const View& x = args.x;
  if (x.size(0) < kLeastRows || x.size(0) > kMostRows) return "takes 5 to 64 rows";
  if (x.dtype != DType::f16 && x.dtype != DType::bf16) return "takes x of f16 and bf16";
  if (!gpu::aligned(x.data)) return "reads x 16 bytes at a time";
  if (x.size(1) >= int64_t{1} << 25) return "counts elements of x in 32 bits";
  for (const LinearPart& part : args.parts) {
    if (!is_quantized(part.weight.dtype)) return "takes block types";
    if (part.weight.dtype == DType::f8_g128) return "takes codes that are integers or of a book";
    if (part.weight.packing != gpu::kPlanesPacking) return "reads block types packed";
  }
  return nullptr;
}

gpu::Tiling tile(const gpu::Properties& device, int64_t outs, int64_t depth) {
  gpu::Tiling tiling{.outs = kOuts, .waves = kWaves};
  const int64_t busy = gpu::kBusyWaves * device.multiprocessors;
  const int64_t groups = (outs + kOuts - 1) / kOuts;
  while (2 * tiling.split <= tiling.waves && groups * tiling.split < busy &&
         depth >= 2 * tiling.split * kChunk) {
    tiling.split *= 2;
  }
  return tiling;
}

void run_type(const LinearArgs& args, DType weight, Stream& stream) {
  const View& x = args.x;
  const gpu::Tiling tiling =
      tile(gpu::device_of(stream).properties(), gpu::outs_of(args, weight), x.size(1));
  gpu::KernelName kernel("matvec_mma", x.dtype, name(weight));
  kernel.part(x.size(0) <= 16 ? "n2" : "n8");
  const char* family =
      info(weight).block_size == 32 ? "matvec_mma_small_blocks" : "matvec_mma_k_blocks";
  const shared::MatvecParams params{.x = x.data,
                                    .in = x.size(1),
                                    .rows = static_cast<int32_t>(x.size(0)),
                                    .split = static_cast<int32_t>(tiling.split),
                                    .part_count = 0,
                                    .parts = {}};
  gpu::launch_parts(args, weight, tiling, params,
                    [&](const shared::MatvecParams& filled, uint32_t blocks) {
                      gpu::launch(stream,
                                  {.op = "linear",
                                   .family = family,
                                   .kernel = kernel,
                                   .grid = {.x = blocks},
                                   .threads = kMatvecThreads},
                                  filled);
                    });
}

void run(const LinearArgs& args, Stream& stream) {
  for (size_t i = 0; i < args.parts.size(); ++i) {
    const DType weight = args.parts[i].weight.dtype;
    const auto earlier = args.parts.first(i);
    const bool done = std::any_of(earlier.begin(), earlier.end(), [&](const LinearPart& part) {
      return part.weight.dtype == weight;
    });
    if (!done) run_type(args, weight, stream);
  }
}

}  // namespace

const Impl<LinearArgs> linear_few_packed{"mma_few_packed", refuse, run};

}  // namespace rbee::cuda
