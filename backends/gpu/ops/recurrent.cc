#include "backends/gpu/ops/recurrent.h"

#include "backends/gpu/launch.h"
#include "backends/shared/recurrent_params.h"

namespace rbee::gpu {
namespace {

// As in kernels/recurrent.cu.
constexpr int64_t kConvThreads = 256;
constexpr uint32_t kRuleThreads = 128;
constexpr int64_t kMostKeys = 256;

bool has_kernel(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f64;
}

shared::StateLists lists(const StateBatch& batch) {
  return {.seq_starts = batch.seq_starts.as<const int32_t>(),
          .positions = batch.positions.as<const int32_t>(),
          .slots = batch.slots.as<const int32_t>()};
}

const char* refuse_causal_conv(const CausalConvArgs& args) {
  return has_kernel(args.x.dtype) ? nullptr : "takes f32, f16, bf16 and f64";
}

void run_causal_conv(const CausalConvArgs& args, Stream& stream) {
  const shared::CausalConvParams params{.x = args.x.data,
                                        .weight = args.weight.as<const float>(),
                                        .y = args.y.data,
                                        .state = args.state.as<float>(),
                                        .batch = lists(args.batch),
                                        .x_row = args.x.stride(0),
                                        .x_step = args.x.stride(1),
                                        .y_row = args.y.stride(0),
                                        .y_step = args.y.stride(1),
                                        .channels = args.x.size(1),
                                        .taps = static_cast<int32_t>(args.weight.size(0) - 1)};
  launch(stream,
         {.op = "causal_conv",
          .family = "recurrent",
          .kernel = KernelName("causal_conv", args.x.dtype),
          .grid = {.x = blocks_for(params.channels, kConvThreads),
                   .y = blocks_for(args.batch.slots.size(0), 1)},
          .threads = kConvThreads},
         params);
}

const char* refuse_delta_rule(const DeltaRuleArgs& args) {
  if (!has_kernel(args.v.dtype)) return "takes f32, f16, bf16 and f64";
  return args.k.size(2) <= kMostKeys ? nullptr : "takes keys of up to 256 elements";
}

shared::TokenHeads token_heads(const View& x) {
  return {.data = x.data,
          .row = x.stride(0),
          .head = x.stride(1),
          .step = x.rank > 2 ? x.stride(2) : 0};
}

void run_delta_rule(const DeltaRuleArgs& args, Stream& stream) {
  const shared::DeltaRuleParams params{.q = token_heads(args.q),
                                       .k = token_heads(args.k),
                                       .v = token_heads(args.v),
                                       .a = token_heads(args.a),
                                       .b = token_heads(args.b),
                                       .decay = args.decay.as<const float>(),
                                       .a_bias = args.a_bias.as<const float>(),
                                       .y = args.y.data,
                                       .state = args.state.as<float>(),
                                       .batch = lists(args.batch),
                                       .key_heads = static_cast<int32_t>(args.k.size(1)),
                                       .heads = static_cast<int32_t>(args.v.size(1)),
                                       .keys = static_cast<int32_t>(args.k.size(2)),
                                       .values = static_cast<int32_t>(args.v.size(2)),
                                       .tiled = args.tiled};
  launch(
      stream,
      {.op = "delta_rule",
       .family = "recurrent",
       .kernel = KernelName("delta_rule", args.v.dtype),
       .grid = {.x = blocks_for(args.v.size(1), 1), .y = blocks_for(args.batch.slots.size(0), 1)},
       .threads = kRuleThreads},
      params);
}

}  // namespace

const Impl<CausalConvArgs> causal_conv{"gpu", refuse_causal_conv, run_causal_conv};
const Impl<DeltaRuleArgs> delta_rule{"gpu", refuse_delta_rule, run_delta_rule};

}  // namespace rbee::gpu
