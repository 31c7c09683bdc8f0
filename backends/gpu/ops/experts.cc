#include "backends/gpu/ops/experts.h"

#include <algorithm>
#include <optional>

#include "backends/api/dispatch_blocks.h"
#include "backends/gpu/gpu_device.h"
#include "backends/gpu/ops/float_number.h"
#include "backends/gpu/ops/matvec_parts.h"
#include "backends/gpu/ops/pack_weight.h"
#include "backends/gpu/ops/quantized_input.h"
#include "backends/gpu/product_tiles.h"
#include "backends/gpu/rows.h"
#include "backends/shared/expert_params.h"
#include "backends/shared/packed_weight.h"

namespace rbee::gpu {
namespace {

static_assert(kMaxExperts == shared::kMostExperts);

constexpr const char* kOp = "expert_linear";
// Up to this many tokens, or choices of an expert on average, each choice reads its weight.
constexpr int64_t kFewTokens = 8;
constexpr int64_t kFewOfExpert = 2;
constexpr int64_t kMostChoices = 65535;  // of a grid's second axis

int64_t expert_bytes(const View& weight) {
  const int64_t outs = weight.size(1), in = weight.size(2);
  if (weight.packing == 0) return outs * row_bytes(weight.dtype, in);
  int64_t bytes = 0;
  dispatch_blocks(kOp, weight.dtype, [&]<typename Block>() {
    bytes = outs * shared::packed_layout<Block>(in).row_bytes;
  });
  return bytes;
}

const char* refuse_type(const View& weight) {
  if (is_quantized(weight.dtype)) {
    return weight.packing == kPlanesPacking ? nullptr : "reads block types packed";
  }
  const bool read =
      weight.dtype == DType::f32 || weight.dtype == DType::f16 || weight.dtype == DType::bf16;
  return read ? nullptr : "reads f32, f16, bf16 and block types";
}

const char* refuse_tiles(const ExpertLinearArgs& args) {
  for (const ExpertPart& part : args.parts) {
    if (const char* reason = refuse_type(part.weight)) return reason;
  }
  return nullptr;
}

const char* refuse_matvec(const ExpertLinearArgs& args) {
  const int64_t choices = args.ids.numel();
  const int64_t experts = args.parts.front().weight.size(0);
  if (args.ids.size(0) > kFewTokens && choices > kFewOfExpert * experts) return "many tokens";
  if (choices > kMostChoices) return "takes up to 65535 choices";
  if (!aligned(args.x.data)) return "reads x 16 bytes at a time";
  for (const ExpertPart& part : args.parts) {
    if (const char* reason = refuse_type(part.weight)) return reason;
    const View& weight = part.weight;
    const bool plain = weight.packing == 0;
    if (plain && (row_bytes(weight.dtype, weight.size(2)) % 16 != 0 || !aligned(weight.data))) {
      return "reads weights 16 bytes at a time";
    }
    if (plain && args.x.size(1) * info(args.x.dtype).block_bytes % 16 != 0) {
      return "reads rows of x 16 bytes at a time";
    }
  }
  return nullptr;
}

// Fills the parts of one launch; returns the blocks that they take along the grid's first axis.
template <typename One>
uint32_t add_parts(std::span<const ExpertPart> parts, const Properties& device,
                   shared::ExpertMatvecParams<One>& params) {
  const int64_t waves = shared::kMatvecThreads / device.lane_count;
  uint32_t blocks = 0;
  for (const ExpertPart& part : parts) {
    const int64_t outs = part.weight.size(1);
    params.expert_bytes[params.one.part_count] = expert_bytes(part.weight);
    params.one.parts[params.one.part_count++] = {.weight = part.weight.data,
                                                 .bias = part.bias.data,
                                                 .y = part.y.data,
                                                 .outs = outs,
                                                 .first_block = blocks};
    blocks += blocks_for(outs, waves * shared::matvec_outs(1));
  }
  return blocks;
}

template <typename One>
void start_matvec(const ExpertLinearArgs& args, std::span<const ExpertPart> parts, const One& one,
                  const char* family, KernelName kernel, Stream& stream) {
  const Properties& device = device_of(stream).properties();
  shared::ExpertMatvecParams<One> params{.one = one,
                                         .ids = args.ids.as<const int32_t>(),
                                         .each = choices_of_row(args),
                                         .x_bytes = info(args.x.dtype).block_bytes,
                                         .expert_bytes = {}};
  const uint32_t blocks = add_parts(parts, device, params);
  launch(stream,
         {.op = kOp,
          .family = family,
          .kernel = kernel.lanes(device.lane_count),
          .grid = {.x = blocks, .y = static_cast<uint32_t>(args.ids.numel())},
          .threads = shared::kMatvecThreads},
         params);
}

void run_plain_matvec(const ExpertLinearArgs& args, std::span<const ExpertPart> parts,
                      Stream& stream) {
  const shared::MatvecParams one{
      .x = args.x.data, .in = args.x.size(1), .rows = 1, .split = 1, .part_count = 0, .parts = {}};
  start_matvec(args, parts, one, "expert_matvec",
               KernelName("expert_matvec", args.x.dtype, name(parts.front().weight.dtype)), stream);
}

void run_packed_matvec(const ExpertLinearArgs& args, std::span<const ExpertPart> parts,
                       const QuantizedInput& input, Stream& stream) {
  const DType weight = parts.front().weight.dtype;
  const shared::MatvecQuantParams one{.x = input.view(args.x.size(0)),
                                      .in = args.x.size(1),
                                      .rows = 1,
                                      .split = 1,
                                      .part_count = 0,
                                      .x_type = float_number(args.x.dtype),
                                      .parts = {}};
  constexpr PackedFamilies kFamilies{"expert_matvec_small_blocks", "expert_matvec_k_blocks",
                                     "expert_matvec_e4m3", "expert_matvec_few_bits"};
  start_matvec(args, parts, one, kFamilies.of(weight), KernelName("expert_matvec", weight), stream);
}

// Neighbouring parts of one type share a launch.
void run_matvec(const ExpertLinearArgs& args, Stream& stream) {
  if (args.ids.numel() == 0) return;
  std::optional<QuantizedInput> input;
  for (size_t first = 0; first < args.parts.size();) {
    const DType weight = args.parts[first].weight.dtype;
    size_t end = first + 1;
    while (end < args.parts.size() && end - first < shared::kMatvecParts &&
           args.parts[end].weight.dtype == weight) {
      ++end;
    }
    const auto parts = args.parts.subspan(first, end - first);
    first = end;
    if (!is_quantized(weight)) {
      run_plain_matvec(args, parts, stream);
      continue;
    }
    if (!input) input.emplace(kOp, args.x, stream);
    run_packed_matvec(args, parts, *input, stream);
  }
}

void run_tiles(const ExpertLinearArgs& args, Stream& stream) {
  if (args.ids.numel() == 0) return;
  const ExpertGroups groups(args, stream);
  for (const ExpertPart& part : args.parts) {
    const View& weight = part.weight;
    launch(stream,
           {.op = kOp,
            .family = has_few_bits(weight.dtype) ? "expert_tiles_few_bits"
                      : weight.packing != 0      ? "expert_tiles_packed"
                                                 : "expert_tiles",
            .kernel = KernelName("expert_tiles", args.x.dtype, name(weight.dtype)),
            .grid = {.x = grid_for_tiles(most_expert_tiles(groups, weight.size(1)))},
            .threads = kProductThreads},
           expert_tiles_params(args, part, groups));
  }
}

void run_route(const RouteExpertsArgs& args, Stream& stream) {
  const int lanes = device_of(stream).properties().lane_count;
  KernelName kernel("route_experts");
  launch(stream,
         {.op = "route_experts",
          .family = "experts",
          .kernel = kernel.lanes(lanes),
          .grid = {.x = static_cast<uint32_t>(args.logits.size(0))},
          .threads = static_cast<uint32_t>(lanes)},
         shared::RouteExpertsParams{.logits = args.logits.as<const float>(),
                                    .bias = args.bias.as<const float>(),
                                    .ids = args.ids.as<int32_t>(),
                                    .weights = args.weights.as<float>(),
                                    .experts = static_cast<int32_t>(args.logits.size(1)),
                                    .chosen = static_cast<int32_t>(args.ids.size(1)),
                                    .groups = args.groups,
                                    .kept_groups = args.kept_groups,
                                    .sigmoid = args.score == ExpertScore::sigmoid ? 1 : 0,
                                    .two_best = args.group_score == GroupScore::two_best ? 1 : 0,
                                    .normalise = args.normalise ? 1 : 0,
                                    .scale = args.scale});
}

void run_sum(const ExpertSumArgs& args, Stream& stream) {
  constexpr int64_t kMostBlocks = 1 << 20;
  const shared::ExpertSumParams params{.x = args.x.data,
                                       .weights = args.weights.as<const float>(),
                                       .y = args.y.data,
                                       .tokens = args.y.size(0),
                                       .dim = args.y.size(1),
                                       .chosen = static_cast<int32_t>(args.weights.size(1))};
  const int64_t elements = std::min(args.y.numel(), kMostBlocks * shared::kExpertSumThreads);
  launch(stream,
         {.op = "expert_sum",
          .family = "experts",
          .kernel = KernelName("expert_sum", args.x.dtype),
          .grid = {.x = blocks_for(elements, shared::kExpertSumThreads)},
          .threads = shared::kExpertSumThreads},
         params);
}

}  // namespace

shared::ExpertTilesParams expert_tiles_params(const ExpertLinearArgs& args, const ExpertPart& part,
                                              const ExpertGroups& groups) {
  const shared::ExpertGroupsParams& of = groups.params();
  return {.x = args.x.data,
          .weight = part.weight.data,
          .bias = part.bias.data,
          .y = part.y.data,
          .order = of.order,
          .starts = of.starts,
          .tiles = of.tiles,
          .outs = part.weight.size(1),
          .depth = part.weight.size(2),
          .expert_bytes = expert_bytes(part.weight),
          .experts = of.experts,
          .each = choices_of_row(args)};
}

int64_t most_expert_tiles(const ExpertGroups& groups, int64_t outs) {
  const int64_t down = groups.params().choices / shared::kExpertRows + groups.params().experts;
  return product_tiles(down * shared::kExpertRows, outs);
}

int32_t choices_of_row(const ExpertLinearArgs& args) {
  return static_cast<int32_t>(args.ids.numel() / args.x.size(0));
}

ExpertGroups::ExpertGroups(const ExpertLinearArgs& args, Stream& stream)
    : memory_(stream,
              static_cast<size_t>(args.ids.numel() + 2 * (args.parts.front().weight.size(0) + 1)) *
                  sizeof(int32_t)) {
  const int64_t choices = args.ids.numel(), experts = args.parts.front().weight.size(0);
  auto* order = memory_.as<int32_t>();
  params_ = {.ids = args.ids.as<const int32_t>(),
             .order = order,
             .starts = order + choices,
             .tiles = order + choices + experts + 1,
             .choices = static_cast<int32_t>(choices),
             .experts = static_cast<int32_t>(experts)};
  launch(stream,
         {.op = kOp,
          .family = "experts",
          .kernel = KernelName("expert_groups"),
          .grid = {.x = 1},
          .threads = shared::kGroupThreads},
         params_);
}

const Impl<RouteExpertsArgs> route_experts{"gpu", never_refuse, run_route};
const Impl<ExpertLinearArgs> expert_matvec{"gpu_few", refuse_matvec, run_matvec};
const Impl<ExpertLinearArgs> expert_tiles{"gpu", refuse_tiles, run_tiles};
const Impl<ExpertSumArgs> expert_sum{"gpu", never_refuse, run_sum};

}  // namespace rbee::gpu
