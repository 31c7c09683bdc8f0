#include "rbee/ops/linear.h"

#include <algorithm>

#include "rbee/ops/checks.h"
#include "rbee/ops/input_watch.h"
#include "rbee/ops/linear_checks.h"
#include "rbee/ops/run.h"

namespace rbee {
namespace {

// Rows to pack in one step, so that their memory can be given back before the next.
int64_t rows_at_once(const Tensor& weight, const PackingPlan& plan) {
  constexpr int64_t kStepBytes = int64_t{8} << 20;
  const int64_t rows = weight.dim(0);
  if (plan.unit_rows == 0 || weight.bytes() <= kStepBytes) return rows;
  const int64_t unit_bytes = weight.bytes() / rows * plan.unit_rows;
  return std::max(kStepBytes / unit_bytes, int64_t{1}) * plan.unit_rows;
}

// Whether `next` follows the end of `x` in memory, or neither exists.
[[maybe_unused]] bool follows_in_memory(const Tensor& x, const Tensor& next) {
  if (!x.defined() || !next.defined()) return !x.defined() && !next.defined();
  const auto* end = static_cast<const std::byte*>(x.view().data) + x.bytes();
  return x.dtype() == next.dtype() && next.view().data == end;
}

bool all_adjoin(std::span<const LinearWeights* const> weights) {
  for (size_t i = 1; i < weights.size(); ++i) {
    if (!weights[i]->adjoins) return false;
    RB_ASSERT(follows_in_memory(weights[i - 1]->weight, weights[i]->weight) &&
              follows_in_memory(weights[i - 1]->bias, weights[i]->bias));
  }
  return weights.size() > 1;
}

// What one input of all of them may be rounded to.
DType may_all_round_to(std::span<const LinearWeights* const> weights) {
  const DType type = weights.front()->may_round_to;
  const bool all = std::ranges::all_of(
      weights, [&](const LinearWeights* layer) { return layer->may_round_to == type; });
  return all ? type : DType::f32;
}

// Rows of all of them, from the first's on.
View with_rows(View view, int64_t rows) {
  view.sizes[0] = rows;
  return view;
}

// One product for weights that follow each other in memory; results are columns of one tensor.
std::vector<Tensor> linear_joined(const Tensor& x, std::span<const LinearWeights* const> weights) {
  int64_t outs = 0;
  for (const LinearWeights* layer : weights) outs += layer->weight.dim(0);
  const Tensor y = empty({x.dim(0), outs}, x.dtype(), x.device());
  const LinearWeights& first = *weights[0];
  const LinearPart part{.weight = with_rows(first.weight.view(), outs),
                        .bias = first.bias.defined() ? with_rows(first.bias.view(), outs) : View{},
                        .y = y.view()};
  const LinearArgs args{
      .x = x.view(), .parts = {&part, 1}, .may_round_to = may_all_round_to(weights)};
  run("linear", kernels(x).linear, args, x.stream());
  std::vector<Tensor> results;
  int64_t at = 0;
  for (const LinearWeights* layer : weights) {
    results.push_back(y.slice(Axis{1}, at, layer->weight.dim(0)));
    at += layer->weight.dim(0);
  }
  return results;
}

}  // namespace

void check_linear_input(const char* op, const Tensor& x) {
  check_plain(op, "x", x);
  check_rank(op, "x", x, 2);
  check(x.dtype() == DType::f32 || x.dtype() == DType::f16 || x.dtype() == DType::bf16, op, "x is ",
        x, ", wanted f32, f16 or bf16");
  check(x.contiguous(), op, "x is ", x, " and not contiguous");
}

void check_linear_weights(const char* op, const Tensor& x, const LinearWeights& layer) {
  const Tensor& weight = layer.weight;
  check_same_device(op, "x", x, "weight", weight);
  check_rank(op, "weight", weight, 2);
  check(weight.dim(1) == x.dim(1), op, "x is ", x, ", weight is ", weight,
        ": their last sizes differ");
  check(is_quantized(weight.dtype()) || is_float(weight.dtype()), op, "weight is ", weight,
        ", not a float or block type");
  check(weight.contiguous(), op, "weight is ", weight, " and not contiguous");
  if (!layer.bias.defined()) return;
  check_like(op, "x", x, "bias", layer.bias);
  check(layer.bias.rank() == 1 && layer.bias.dim(0) == weight.dim(0), op, "bias is ", layer.bias,
        ", weight is ", weight);
  check(layer.bias.contiguous(), op, "bias is ", layer.bias, " and not contiguous");
}

std::vector<Tensor> linear_many(const Tensor& x, std::span<const LinearWeights* const> weights) {
  check_linear_input("linear", x);
  check(!weights.empty(), "linear", "x is ", x, ", and no weights are given");
  for (const LinearWeights* layer : weights) check_linear_weights("linear", x, *layer);
  if (InputWatch* watch = input_watch()) watch->on_linear(x, weights);
  // For one row kernels take all parts at once, and results follow each other.
  if (x.dim(0) > 1 && all_adjoin(weights)) return linear_joined(x, weights);
  std::vector<Tensor> results;
  std::vector<LinearPart> parts;
  results.reserve(weights.size());
  parts.reserve(weights.size());
  for (const LinearWeights* layer : weights) {
    results.push_back(empty({x.dim(0), layer->weight.dim(0)}, x.dtype(), x.device()));
    parts.push_back({.weight = layer->weight.view(),
                     .bias = view_or_absent(layer->bias),
                     .y = results.back().view()});
  }
  const LinearArgs args{.x = x.view(), .parts = parts, .may_round_to = may_all_round_to(weights)};
  run("linear", kernels(x).linear, args, x.stream());
  return results;
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, DType may_round_to) {
  check_linear_input("linear", x);
  check(may_round_to == DType::f32 || may_round_to == DType::f16 || may_round_to == DType::bf16 ||
            may_round_to == DType::f8e4m3,
        "linear", "x may round to ", may_round_to, ", wanted f32, f16, bf16 or f8e4m3");
  check_linear_weights("linear", x, {.weight = weight, .bias = bias});
  if (InputWatch* watch = input_watch()) {
    const LinearWeights layer{.weight = weight, .bias = bias};
    const LinearWeights* const one[] = {&layer};
    watch->on_linear(x, one);
  }
  Tensor y = empty({x.dim(0), weight.dim(0)}, x.dtype(), x.device());
  const LinearPart part{.weight = weight.view(), .bias = view_or_absent(bias), .y = y.view()};
  const LinearArgs args{.x = x.view(), .parts = {&part, 1}, .may_round_to = may_round_to};
  run("linear", kernels(x).linear, args, x.stream());
  return y;
}

Tensor pack_weight(const Tensor& weight, const std::function<void(int64_t rows)>& on_packed) {
  check_defined("pack_weight", "weight", weight);
  check_rank("pack_weight", "weight", weight, 2);
  check(weight.packing() == 0, "pack_weight", "weight is ", weight, " and packed already");
  check(weight.contiguous(), "pack_weight", "weight is ", weight, " and not contiguous");
  const KernelTable& table = kernels(weight);
  if (table.plan_packing == nullptr) return weight;
  const PackingPlan plan = table.plan_packing(weight.view());
  if (plan.packing == 0) return weight;
  auto buffer = std::make_shared<Buffer>(weight.device(), static_cast<size_t>(plan.bytes));
  const int64_t rows = weight.dim(0);
  const int64_t step = on_packed ? rows_at_once(weight, plan) : rows;
  std::byte* out = buffer->data();
  for (int64_t first = 0; first < rows; first += step) {
    const Tensor part = weight.slice(Axis{0}, first, std::min(step, rows - first));
    View packed = part.view();
    packed.data = out;
    packed.packing = plan.packing;
    run("pack_weight", table.pack_weight, PackWeightArgs{.weight = part.view(), .packed = packed},
        weight.stream());
    out += table.plan_packing(part.view()).bytes;
    if (!on_packed) continue;
    weight.device().synchronize(weight.stream());
    on_packed(first + part.dim(0));
  }
  View packed = weight.view();
  packed.data = buffer->data();
  packed.packing = plan.packing;
  return Tensor::from_buffer(std::move(buffer), packed);
}

}  // namespace rbee
