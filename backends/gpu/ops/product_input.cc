#include "backends/gpu/ops/product_input.h"

#include "backends/gpu/launch.h"
#include "backends/gpu/ops/elementwise.h"

namespace rbee::gpu {
namespace {

bool half_width(DType type) {
  return type == DType::f16 || type == DType::bf16;
}

// Rounded up to the alignment of loads.
size_t terms_bytes(const View& x, DType type) {
  return static_cast<size_t>(SplitInput::count(type) * x.numel() * 2 + 15) / 16 * 16;
}

}  // namespace

ProductKind product_kind(DType x, DType weight, DType may_round_to) {
  if (half_width(x) || x == weight) return {.type = x};
  const bool may_round = half_width(may_round_to);
  if (half_width(weight)) return {.type = weight, .split = weight != may_round_to};
  if (may_round) return {.type = may_round_to};
  if (weight == DType::f8e4m3) return {.type = DType::f16, .split = true};
  return {.type = DType::bf16};
}

int SplitInput::count(DType type) {
  return type == DType::f16 ? shared::kF16Terms : shared::kBf16Terms;
}

SplitInput::SplitInput(const char* op, const View& x, DType type, Stream& stream)
    : op_(op),
      stream_(stream),
      memory_(stream, terms_bytes(x, type) + static_cast<size_t>(x.size(0)) * sizeof(float)),
      terms_(x) {
  auto* scales = reinterpret_cast<float*>(memory_.as<std::byte>() + terms_bytes(x, type));
  scales_ = scales;
  terms_.data = memory_.as<void>();
  terms_.dtype = type;
  terms_.sizes[0] = count(type) * x.size(0);
  if (x.numel() == 0) return;
  KernelName kernel("split_x", type);
  launch(stream,
         {.op = op,
          .family = "split_terms",
          .kernel = kernel.lanes(device_of(stream).properties().lane_count),
          .grid = {.x = static_cast<uint32_t>(x.size(0))},
          .threads = shared::kSplitThreads},
         shared::SplitXParams{.x = x.as<const float>(),
                              .terms = terms_.data,
                              .scales = scales,
                              .rows = x.size(0),
                              .depth = x.size(1)});
}

void SplitInput::join(const Join& join) const {
  const View& y = join.y;
  const int64_t rows = y.size(0), outs = y.size(1);
  if (y.numel() == 0) return;
  const uint32_t across = blocks_for(outs, shared::kJoinThreads * shared::kJoinEach);
  launch(stream_,
         {.op = op_,
          .family = "split_terms",
          .kernel = KernelName("join_terms"),
          .grid = {.x = static_cast<uint32_t>(rows) * across},
          .threads = shared::kJoinThreads},
         shared::JoinTermsParams{.products = join.products,
                                 .scales = scales_,
                                 .bias = join.bias.as<const float>(),
                                 .experts = join.experts.as<const int32_t>(),
                                 .y = y.as<float>(),
                                 .rows = rows,
                                 .y_row = y.stride(0),
                                 .outs = static_cast<int32_t>(outs),
                                 .terms = count(terms_.dtype),
                                 .each = join.each,
                                 .step = terms_.dtype == DType::f16 ? 1.0f / 2048 : 1.0f});
}

View ProductInput::rounded(DType type) {
  if (type == x_.dtype) return x_;
  std::optional<Scratch>& held = made(type).rounded;
  View to = x_;
  to.dtype = type;
  if (held) {
    to.data = held->as<void>();
    return to;
  }
  held.emplace(stream_, static_cast<size_t>(x_.numel() * info(type).block_bytes));
  to.data = held->as<void>();
  cast.run({.x = x_, .y = to}, stream_);
  return to;
}

const SplitInput& ProductInput::split(DType type) {
  std::optional<SplitInput>& held = made(type).split;
  if (!held) held.emplace(op_, x_, type, stream_);
  return *held;
}

}  // namespace rbee::gpu
