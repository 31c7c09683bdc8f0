#include "backends/gpu/ops/layer_norm.h"

#include <algorithm>

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/rows.h"
#include "backends/shared/norm_params.h"

namespace rbee::gpu {
namespace {

// As in kernels/layer_norm.cu.
constexpr int64_t kThreads = 256;
constexpr int64_t kWaveThreads = 128;

// The number of 16-byte packs of a row, if all operands can be read so; else 0.
int64_t packs_of(const LayerNormArgs& args) {
  const DType dtype = args.x.dtype;
  if (dtype != DType::f32 && dtype != DType::f16 && dtype != DType::bf16) return 0;
  for (const View* view : {&args.x, &args.weight, &args.bias, &args.y}) {
    if (*view && !vector_rows(*view)) return 0;
  }
  return args.x.size(-1) * info(dtype).block_bytes / 16;
}

int64_t step_of(const View& vector) {
  return vector ? vector.stride(0) : 0;
}

void run_layer_norm_rows(const LayerNormArgs& args, Stream& stream) {
  const int64_t rows = row_count(args.x);
  const int64_t dim = args.x.size(-1);
  if (rows == 0 || dim == 0) return;
  const int lanes = device_of(stream).properties().lane_count;
  const int64_t packs = packs_of(args);
  KernelName kernel("layer_norm", args.x.dtype);
  const bool by_waves = packs > 0 && packs <= 5 * lanes;
  if (by_waves) {
    kernel.part(packs <= 2 * lanes ? "few2" : packs <= 3 * lanes ? "few3" : "few5");
  } else if (packs > 0 && packs <= 4 * kThreads) {
    kernel.part("packed");
  }
  launch(stream,
         {.op = "layer_norm",
          .family = "layer_norm",
          .kernel = kernel.lanes(lanes),
          .grid = {.x = blocks_for(rows, by_waves ? kWaveThreads / lanes : 1)},
          .threads = static_cast<uint32_t>(by_waves ? kWaveThreads : kThreads)},
         shared::LayerNormParams{.x = args.x.data,
                                 .weight = args.weight.data,
                                 .bias = args.bias.data,
                                 .y = args.y.data,
                                 .x_rows = rows_of(args.x),
                                 .y_rows = rows_of(args.y),
                                 .weight_step = step_of(args.weight),
                                 .bias_step = step_of(args.bias),
                                 .rows = rows,
                                 .dim = dim,
                                 .eps = args.eps});
}

void run_layer_norm(const LayerNormArgs& args, Stream& stream) {
  for_row_parts(args, {&LayerNormArgs::x, &LayerNormArgs::y}, kMostRows,
                [&](const LayerNormArgs& part) { run_layer_norm_rows(part, stream); });
}

}  // namespace

const Impl<LayerNormArgs> layer_norm{"gpu", never_refuse, run_layer_norm};

}  // namespace rbee::gpu
