#include "backends/gpu/ops/rms_norm.h"

#include <algorithm>

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/rows.h"
#include "backends/shared/norm_params.h"

namespace rbee::gpu {
namespace {

constexpr int64_t kThreads = 256;  // as in kernels/rms_norm.cu

bool packed_dtype(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

// The variant that keeps a row in registers, or the general one.
std::string_view pick_variant(std::initializer_list<const View*> rows, const View& weight) {
  if (!packed_dtype(weight.dtype) || !vector_rows(weight)) return {};
  if (!std::all_of(rows.begin(), rows.end(), [](const View* v) { return vector_rows(*v); })) {
    return {};
  }
  const int64_t packs = weight.size(0) * info(weight.dtype).block_bytes / 16;
  if (packs <= kThreads) return "packed1";
  return packs <= 4 * kThreads ? "packed4" : "";
}

void run_norm(const char* op, const shared::RmsNormParams& params, const View& x,
              std::string_view variant, Stream& stream) {
  const int64_t rows = row_count(x);
  if (rows == 0 || params.dim == 0) return;
  KernelName kernel("rms_norm", x.dtype, variant);
  kernel.lanes(device_of(stream).properties().lane_count);
  launch(stream,
         {.op = op,
          .family = "rms_norm",
          .kernel = kernel,
          .grid = {.x = blocks_for(rows, 1)},
          .threads = kThreads,
          .writes = Writes::floats},
         params);
}

void run_rms_norm_rows(const RmsNormArgs& args, Stream& stream) {
  const shared::RmsNormParams params{.x = args.x.data,
                                     .residual = nullptr,
                                     .weight = args.weight.data,
                                     .sum = nullptr,
                                     .y = args.y.data,
                                     .x_rows = rows_of(args.x),
                                     .residual_rows = {},
                                     .sum_rows = {},
                                     .y_rows = rows_of(args.y),
                                     .weight_step = args.weight.stride(0),
                                     .dim = args.x.size(-1),
                                     .eps = args.eps};
  run_norm("rms_norm", params, args.x, pick_variant({&args.x, &args.y}, args.weight), stream);
}

void run_rms_norm(const RmsNormArgs& args, Stream& stream) {
  for_row_parts(args, {&RmsNormArgs::x, &RmsNormArgs::y}, kMostRows,
                [&](const RmsNormArgs& part) { run_rms_norm_rows(part, stream); });
}

void run_add_rms_norm_rows(const AddRmsNormArgs& args, Stream& stream) {
  const shared::RmsNormParams params{.x = args.x.data,
                                     .residual = args.residual.data,
                                     .weight = args.weight.data,
                                     .sum = args.sum.data,
                                     .y = args.y.data,
                                     .x_rows = rows_of(args.x),
                                     .residual_rows = rows_of(args.residual),
                                     .sum_rows = rows_of(args.sum),
                                     .y_rows = rows_of(args.y),
                                     .weight_step = args.weight.stride(0),
                                     .dim = args.x.size(-1),
                                     .eps = args.eps};
  const auto rows = {&args.x, &args.residual, &args.sum, &args.y};
  run_norm("add_rms_norm", params, args.x, pick_variant(rows, args.weight), stream);
}

void run_add_rms_norm(const AddRmsNormArgs& args, Stream& stream) {
  using Args = AddRmsNormArgs;
  for_row_parts(args, {&Args::x, &Args::residual, &Args::sum, &Args::y}, kMostRows,
                [&](const Args& part) { run_add_rms_norm_rows(part, stream); });
}

}  // namespace

const Impl<RmsNormArgs> rms_norm{"gpu", never_refuse, run_rms_norm};
const Impl<AddRmsNormArgs> add_rms_norm{"gpu", never_refuse, run_add_rms_norm};

}  // namespace rbee::gpu
