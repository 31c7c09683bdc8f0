#include "backends/metal/ops/linear_simdgroup.h"

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/ops/matvec_parts.h"
#include "backends/gpu/ops/pack_weight.h"
#include "backends/gpu/ops/tensor_linear.h"
#include "backends/shared/product_params.h"

namespace rbee::metal {
namespace {

// As in kernels/simdgroup_linear.h.
constexpr uint32_t kThreads = 128;
constexpr int64_t kOuts = 64, kLargeRows = 64, kSmallRows = 32;  // of a tile

constexpr gpu::PackedFamilies kFamilies{.small_blocks = "simdgroup_small_blocks",
                                        .k_blocks = "simdgroup_k_blocks",
                                        .e4m3 = "simdgroup_e4m3",
                                        .few_bits = "simdgroup_few_bits"};

uint32_t tiles(int64_t rows, int64_t outs, int64_t tile_rows) {
  return gpu::blocks_for(rows, tile_rows) * gpu::blocks_for(outs, kOuts);
}

const char* refuse(const LinearArgs& args) {
  for (const LinearPart& part : args.parts) {
    const View& weight = part.weight;
    if (weight.dtype == DType::f64) return "would round the weight";
    if (is_quantized(weight.dtype) && weight.packing != gpu::kPlanesPacking) {
      return "reads block types packed";
    }
  }
  return gpu::refuse_tensor_shapes(args);
}

void run_part(const View& x, const LinearPart& part, Stream& stream) {
  const shared::LinearParams params{.x = x.data,
                                    .weight = part.weight.data,
                                    .bias = part.bias.data,
                                    .y = part.y.data,
                                    .rows = x.size(0),
                                    .outs = part.weight.size(0),
                                    .depth = x.size(1),
                                    .y_row = part.y.stride(0)};
  const DType weight = part.weight.dtype;
  // Large tiles are taken if they keep all of the device busy.
  const int64_t cores = gpu::device_of(stream).properties().multiprocessors;
  const bool large =
      params.rows > kSmallRows && tiles(params.rows, params.outs, kLargeRows) >= cores;
  gpu::KernelName kernel("linear_simdgroup", x.dtype, name(weight));
  gpu::launch(stream,
              {.op = "linear",
               .family = is_quantized(weight) ? kFamilies.of(weight) : "simdgroup_plain",
               .kernel = kernel.part(large ? "large" : "small"),
               .grid = {.x = tiles(params.rows, params.outs, large ? kLargeRows : kSmallRows)},
               .threads = kThreads},
              params);
}

void run(const LinearArgs& args, Stream& stream) {
  for (const LinearPart& part : args.parts) run_part(args.x, part, stream);
}

}  // namespace

const Impl<LinearArgs> linear_simdgroup{"simdgroup", refuse, run};

}  // namespace rbee::metal
