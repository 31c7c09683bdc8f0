#include "rbee/ops/fused_linear.h"

#include "rbee/ops/checks.h"
#include "rbee/ops/input_watch.h"
#include "rbee/ops/linear_checks.h"
#include "rbee/ops/norm.h"
#include "rbee/ops/run.h"

namespace rbee {
namespace {

constexpr const char* kOp = "fused_linear";

// The parts of a call with their results; a gate leaves only the first result.
struct Parts {
  std::vector<Tensor> results;
  std::vector<LinearPart> parts;
};

Parts parts_of(const Tensor& x, std::span<const LinearWeights* const> weights, size_t results) {
  Parts out;
  for (const LinearWeights* layer : weights) {
    check_linear_weights(kOp, x, *layer);
    LinearPart part{.weight = layer->weight.view(), .bias = view_or_absent(layer->bias), .y = {}};
    if (out.results.size() < results) {
      out.results.push_back(empty({x.dim(0), layer->weight.dim(0)}, x.dtype(), x.device()));
      part.y = out.results.back().view();
    }
    out.parts.push_back(part);
  }
  return out;
}

bool try_fused(const FusedLinearArgs& args, const Tensor& x) {
  return input_watch() == nullptr && try_run(kOp, kernels(x).fused_linear, args, x.stream());
}

void check_residual(const char* op, const Tensor& x, const LinearWeights& weights,
                    const Tensor& residual) {
  check_linear_input(op, x);
  check_like(op, "x", x, "residual", residual);
  check_shape(op, "residual", residual, Shape{x.dim(0), weights.weight.dim(0)});
  check(residual.contiguous(), op, "residual is ", residual, " and not contiguous");
}

Tensor normed(const LinearInput& input) {
  return input.norm_weight.defined() ? rms_norm(input.x, input.norm_weight, input.eps) : input.x;
}

}  // namespace

void check_linear_norm(const char* op, const LinearInput& input) {
  if (!input.norm_weight.defined()) return;
  check_like(op, "x", input.x, "norm weight", input.norm_weight);
  check_shape(op, "norm weight", input.norm_weight, Shape{input.x.dim(1)});
  check(input.norm_weight.contiguous(), op, "norm weight is ", input.norm_weight,
        " and not contiguous");
}

std::vector<Tensor> linear_many(const LinearInput& input,
                                std::span<const LinearWeights* const> weights) {
  if (!input.norm_weight.defined()) return linear_many(input.x, weights);
  check_linear_input(kOp, input.x);
  check_linear_norm(kOp, input);
  check(!weights.empty(), kOp, "x is ", input.x, ", and no weights are given");
  Parts parts = parts_of(input.x, weights, weights.size());
  const FusedLinearArgs args{.x = input.x.view(),
                             .norm_weight = input.norm_weight.view(),
                             .eps = input.eps,
                             .residual = {},
                             .parts = parts.parts};
  if (try_fused(args, input.x)) return std::move(parts.results);
  return linear_many(normed(input), weights);
}

Tensor gated_linear(GateOp op, const LinearInput& input, const LinearWeights& gate,
                    const LinearWeights& up) {
  check_linear_input(kOp, input.x);
  check_linear_norm(kOp, input);
  const LinearWeights* const both[] = {&gate, &up};
  check(gate.weight.dim(0) == up.weight.dim(0), kOp, "gate is ", gate.weight, ", up is ",
        up.weight);
  Parts parts = parts_of(input.x, both, 1);
  const FusedLinearArgs args{.x = input.x.view(),
                             .norm_weight = view_or_absent(input.norm_weight),
                             .eps = input.eps,
                             .residual = {},
                             .gated = true,
                             .gate = op,
                             .parts = parts.parts};
  if (try_fused(args, input.x)) return parts.results[0];
  const std::vector<Tensor> results = linear_many(normed(input), both);
  return gated(op, results[0], results[1]);
}

std::optional<Tensor> linear_onto(const Tensor& x, const LinearWeights& weights,
                                  const Tensor& residual) {
  check_residual(kOp, x, weights, residual);
  const LinearWeights* const one[] = {&weights};
  const Parts parts = parts_of(x, one, 1);
  const FusedLinearArgs args{
      .x = x.view(), .norm_weight = {}, .residual = residual.view(), .parts = parts.parts};
  if (!try_fused(args, x)) return std::nullopt;
  return parts.results[0];
}

std::optional<SumAndNorm> linear_norm(const Tensor& x, const LinearWeights& weights,
                                      const Tensor& residual, const Tensor& norm_weight,
                                      float eps) {
  constexpr const char* kNormOp = "linear_norm";
  check_residual(kNormOp, x, weights, residual);
  check_linear_weights(kNormOp, x, weights);
  check_linear_norm(kNormOp, {residual, norm_weight, eps});
  if (residual.numel() == 0 || input_watch() != nullptr) return std::nullopt;
  SumAndNorm out{.sum = empty_like(residual), .norm = empty_like(residual)};
  const LinearNormArgs args{.x = x.view(),
                            .weight = weights.weight.view(),
                            .bias = view_or_absent(weights.bias),
                            .residual = residual.view(),
                            .norm_weight = norm_weight.view(),
                            .eps = eps,
                            .sum = out.sum.view(),
                            .y = out.norm.view()};
  if (!try_run(kNormOp, kernels(x).linear_norm, args, x.stream())) return std::nullopt;
  return out;
}

}  // namespace rbee
