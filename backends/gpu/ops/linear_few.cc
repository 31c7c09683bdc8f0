#include "backends/gpu/ops/linear_few.h"

#include <optional>

#include "backends/api/dispatch_blocks.h"
#include "backends/gpu/gpu_device.h"
#include "backends/gpu/ops/float_number.h"
#include "backends/gpu/ops/matvec_parts.h"
#include "backends/gpu/ops/pack_weight.h"
#include "backends/gpu/ops/quantized_input.h"
#include "backends/shared/packed_weight.h"

namespace rbee::gpu {
namespace {

using shared::kMatvecThreads;

constexpr const char* kOp = "linear";

bool plain_type(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16 ||
         dtype == DType::f8e4m3;
}

const char* refuse(const LinearArgs& args) {
  if (args.x.size(0) > shared::kMatvecRows) return "takes up to 8 rows";
  if (!aligned(args.x.data)) return "reads x 16 bytes at a time";
  for (const LinearPart& part : args.parts) {
    const View& weight = part.weight;
    if (is_quantized(weight.dtype)) {
      if (weight.packing != kPlanesPacking) return "reads block types packed";
    } else if (!plain_type(weight.dtype)) {
      return "reads f32, f16, bf16, f8e4m3 and block types";
    } else if (row_bytes(weight.dtype, weight.size(1)) % 16 != 0 || !aligned(weight.data)) {
      return "reads weights 16 bytes at a time";
    }
  }
  return nullptr;
}

// The numbers of rows of x that kernels exist for.
int batch_of(int64_t rows) {
  if (rows == 1) return 1;
  return rows <= 4 ? 4 : 8;
}

// If weights have few rows, several waves share each row until the device is busy, but each wave
// has at least its loads under way. `loads`: a lane's 16-byte loads (or the like) in a row.
MatvecTiling tile(const Properties& device, int batch, int64_t total_outs, int64_t loads) {
  MatvecTiling tiling{.outs = shared::matvec_outs(batch),
                      .waves = kMatvecThreads / device.lane_count};
  const int64_t busy = kBusyWaves * device.multiprocessors;
  const int64_t in_trip = device.lane_count * shared::matvec_steps(device.lane_count, batch);
  const auto groups = (total_outs + tiling.outs - 1) / tiling.outs;
  while (2 * tiling.split <= tiling.waves && groups * tiling.split < busy &&
         loads >= 2 * tiling.split * in_trip) {
    tiling.split *= 2;
  }
  return tiling;
}

void run_plain(const LinearArgs& args, DType weight, Stream& stream) {
  const Properties& device = device_of(stream).properties();
  const View& x = args.x;
  const int batch = batch_of(x.size(0));
  const MatvecTiling tiling =
      tile(device, batch, outs_of(args, weight), row_bytes(weight, x.size(1)) / 16);
  KernelName kernel("matvec", x.dtype, name(weight));
  kernel.part(batch == 1 ? "b1" : batch == 4 ? "b4" : "b8").lanes(device.lane_count);
  const shared::MatvecParams params{.x = x.data,
                                    .in = x.size(1),
                                    .rows = static_cast<int32_t>(x.size(0)),
                                    .split = static_cast<int32_t>(tiling.split),
                                    .part_count = 0,
                                    .parts = {}};
  launch_parts(args, weight, tiling, params,
               [&](const shared::MatvecParams& filled, uint32_t blocks) {
                 launch(stream,
                        {.op = kOp,
                         .family = "matvec",
                         .kernel = kernel,
                         .grid = {.x = blocks},
                         .threads = kMatvecThreads,
                         .writes = Writes::floats},
                        filled);
               });
}

void run_packed(const LinearArgs& args, DType weight, const QuantizedInput& input, Stream& stream) {
  const Properties& device = device_of(stream).properties();
  const View& x = args.x;
  const int batch = batch_of(x.size(0));
  int64_t piece = 0;
  dispatch_blocks(kOp, weight, [&]<typename Block>() { piece = shared::packed_piece<Block>(); });
  const MatvecTiling tiling = tile(device, batch, outs_of(args, weight), x.size(1) / piece);
  KernelName kernel("matvec", weight, batch == 1 ? "b1" : batch == 4 ? "b4" : "b8");
  kernel.lanes(device.lane_count);
  constexpr PackedFamilies kFamilies{"matvec_small_blocks", "matvec_k_blocks", "matvec_e4m3",
                                     "matvec_few_bits"};
  const shared::MatvecQuantParams params{.x = input.view(x.size(0)),
                                         .in = x.size(1),
                                         .rows = static_cast<int32_t>(x.size(0)),
                                         .split = static_cast<int32_t>(tiling.split),
                                         .part_count = 0,
                                         .x_type = float_number(x.dtype),
                                         .parts = {}};
  launch_parts(args, weight, tiling, params,
               [&](const shared::MatvecQuantParams& filled, uint32_t blocks) {
                 launch(stream,
                        {.op = kOp,
                         .family = kFamilies.of(weight),
                         .kernel = kernel,
                         .grid = {.x = blocks},
                         .threads = kMatvecThreads,
                         .writes = Writes::floats},
                        filled);
               });
}

void run(const LinearArgs& args, Stream& stream) {
  if (args.x.size(0) == 0) return;
  std::optional<QuantizedInput> input;
  each_weight_type(args.parts, [&](DType weight) {
    if (!is_quantized(weight)) return run_plain(args, weight, stream);
    if (!input) input.emplace(kOp, args.x, stream);
    run_packed(args, weight, *input, stream);
  });
}

}  // namespace

const Impl<LinearArgs> linear_few{"gpu_few", refuse, run};

}  // namespace rbee::gpu
