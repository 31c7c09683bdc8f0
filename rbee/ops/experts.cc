#include "rbee/ops/experts.h"

#include <algorithm>

#include "rbee/ops/checks.h"
#include "rbee/ops/input_watch.h"
#include "rbee/ops/linear_checks.h"
#include "rbee/ops/run.h"

namespace rbee {
namespace {

void check_route(const Tensor& logits, const RouteOptions& options) {
  constexpr const char* kOp = "route_experts";
  check_rank(kOp, "logits", logits, 2);
  check(logits.dtype() == DType::f32 && logits.contiguous(), kOp, "logits is ", logits,
        ", wanted contiguous f32");
  const int64_t experts = logits.dim(1);
  check(experts >= 1 && experts <= kMaxExperts, kOp, "logits is ", logits, ", wanted from 1 to ",
        kMaxExperts, " experts");
  check(options.groups >= 1 && experts % options.groups == 0, kOp, options.groups,
        " groups do not share out ", experts, " experts");
  check(options.kept_groups >= 1 && options.kept_groups <= options.groups, kOp, options.kept_groups,
        " groups are kept of ", options.groups);
  const int64_t most = experts / options.groups * options.kept_groups;
  check(options.chosen >= 1 && options.chosen <= most, kOp, options.chosen,
        " experts are chosen of ", most);
  if (!options.bias.defined()) return;
  check_like(kOp, "logits", logits, "bias", options.bias);
  check_shape(kOp, "bias", options.bias, Shape{experts});
  check(options.bias.contiguous(), kOp, "bias is ", options.bias, " and not contiguous");
}

void check_layer(const char* op, const Tensor& x, const LinearWeights& layer, int64_t experts) {
  const Tensor& weight = layer.weight;
  check_same_device(op, "x", x, "weight", weight);
  check_rank(op, "weight", weight, 3);
  check(weight.dim(2) == x.dim(1) && weight.dim(0) == experts, op, "x is ", x, ", weight is ",
        weight, ", the first weight has ", experts, " experts");
  check(is_quantized(weight.dtype()) || is_float(weight.dtype()), op, "weight is ", weight,
        ", not a float or block type");
  check(weight.contiguous(), op, "weight is ", weight, " and not contiguous");
  if (!layer.bias.defined()) return;
  check_like(op, "x", x, "bias", layer.bias);
  check_shape(op, "bias", layer.bias, Shape{experts, weight.dim(1)});
  check(layer.bias.contiguous(), op, "bias is ", layer.bias, " and not contiguous");
}

void check_ids(const char* op, const Tensor& x, const Tensor& ids, int64_t experts) {
  check_same_device(op, "x", x, "ids", ids);
  check_rank(op, "ids", ids, 2);
  check(ids.dtype() == DType::i32 && ids.contiguous(), op, "ids is ", ids,
        ", wanted contiguous i32");
  check(x.dim(0) == ids.dim(0) || x.dim(0) == ids.numel(), op, "x is ", x, ", ids is ", ids,
        ": wanted a row for each token or for each choice");
  if (!ids.device().host_accessible()) return;
  for (const int32_t id : ids.to_host<int32_t>()) {
    check(id >= -1 && id < experts, op, "expert ", id, " is outside of 0 to ", experts - 1);
  }
}

void check_matrix(const char* op, const Tensor& matrix) {
  check_rank(op, "matrix", matrix, 2);
  check(matrix.packing() == 0 && matrix.contiguous(), op, "matrix is ", matrix,
        ", wanted a plain contiguous one");
}

// Of one expert; `bytes` also where the layout stays plain.
PackingPlan plan_of(const Tensor& matrix, ExpertLayout layout) {
  const KernelTable& table = kernels(matrix);
  PackingPlan plan;
  if (layout == ExpertLayout::packed && table.plan_packing != nullptr) {
    plan = table.plan_packing(matrix.view());
  }
  if (plan.packing == 0) plan.bytes = matrix.bytes();
  return plan;
}

// A view of `count` matrices like this one.
View stacked(const View& matrix, int64_t count) {
  View out = matrix;
  out.rank = 3;
  const Strides strides = contiguous_strides(Shape{count, matrix.size(0), matrix.size(1)});
  const int64_t sizes[] = {count, matrix.size(0), matrix.size(1)};
  std::copy_n(sizes, 3, out.sizes);
  std::copy_n(strides.data(), 3, out.strides);
  return out;
}

void store(const Tensor& matrix, const PackingPlan& plan, std::byte* to) {
  if (plan.packing == 0) {
    matrix.device().copy(to, matrix.view().data, static_cast<size_t>(matrix.bytes()),
                         CopyKind::device_to_device, matrix.stream());
    return;
  }
  View packed = matrix.view();
  packed.data = to;
  packed.packing = plan.packing;
  run("pack_weight", kernels(matrix).pack_weight,
      PackWeightArgs{.weight = matrix.view(), .packed = packed}, matrix.stream());
}

}  // namespace

Routing route_experts(const Tensor& logits, const RouteOptions& options) {
  check_route(logits, options);
  const int64_t tokens = logits.dim(0);
  Routing out{.ids = empty({tokens, options.chosen}, DType::i32, logits.device()),
              .weights = empty({tokens, options.chosen}, DType::f32, logits.device())};
  if (tokens == 0) return out;
  run("route_experts", kernels(logits).route_experts,
      RouteExpertsArgs{.logits = logits.view(),
                       .bias = view_or_absent(options.bias),
                       .ids = out.ids.view(),
                       .weights = out.weights.view(),
                       .score = options.score,
                       .group_score = options.group_score,
                       .groups = static_cast<int32_t>(options.groups),
                       .kept_groups = static_cast<int32_t>(options.kept_groups),
                       .normalise = options.normalise,
                       .scale = options.scale},
      logits.stream());
  return out;
}

std::vector<Tensor> expert_linear(const Tensor& x, const Tensor& ids,
                                  std::span<const LinearWeights* const> layers) {
  constexpr const char* kOp = "expert_linear";
  check_linear_input(kOp, x);
  check(!layers.empty(), kOp, "x is ", x, ", and no weights are given");
  check_rank(kOp, "weight", layers.front()->weight, 3);
  const int64_t experts = layers.front()->weight.dim(0);
  for (const LinearWeights* layer : layers) check_layer(kOp, x, *layer, experts);
  check_ids(kOp, x, ids, experts);
  if (InputWatch* watch = input_watch()) watch->on_experts(x, ids, layers);
  std::vector<Tensor> results;
  std::vector<ExpertPart> parts;
  for (const LinearWeights* layer : layers) {
    results.push_back(empty({ids.numel(), layer->weight.dim(1)}, x.dtype(), x.device()));
    parts.push_back({.weight = layer->weight.view(),
                     .bias = view_or_absent(layer->bias),
                     .y = results.back().view()});
  }
  if (ids.numel() == 0) return results;
  run(kOp, kernels(x).expert_linear,
      ExpertLinearArgs{.x = x.view(), .ids = ids.view(), .parts = parts}, x.stream());
  return results;
}

Tensor expert_sum(const Tensor& x, const Tensor& weights) {
  constexpr const char* kOp = "expert_sum";
  check_linear_input(kOp, x);
  check_same_device(kOp, "x", x, "weights", weights);
  check_rank(kOp, "weights", weights, 2);
  check(weights.dtype() == DType::f32 && weights.contiguous(), kOp, "weights is ", weights,
        ", wanted contiguous f32");
  check(x.dim(0) == weights.numel(), kOp, "x is ", x, ", weights is ", weights,
        ": wanted a row for each weight");
  Tensor y = empty({weights.dim(0), x.dim(1)}, x.dtype(), x.device());
  if (y.numel() == 0) return y;
  run(kOp, kernels(x).expert_sum,
      ExpertSumArgs{.x = x.view(), .weights = weights.view(), .y = y.view()}, x.stream());
  return y;
}

Tensor pack_experts(int64_t count, const std::function<Tensor(int64_t)>& matrix,
                    ExpertLayout layout) {
  constexpr const char* kOp = "pack_experts";
  check(count >= 1 && count <= kMaxExperts, kOp, count, " experts, wanted from 1 to ", kMaxExperts);
  std::shared_ptr<Buffer> buffer;
  View whole;
  PackingPlan plan;
  for (int64_t e = 0; e < count; ++e) {
    const Tensor one = matrix(e);
    check_matrix(kOp, one);
    if (e == 0) {
      plan = plan_of(one, layout);
      buffer = std::make_shared<Buffer>(one.device(), static_cast<size_t>(count * plan.bytes));
      whole = stacked(one.view(), count);
      whole.data = buffer->data();
      whole.packing = plan.packing;
    }
    check(
        one.dim(0) == whole.sizes[1] && one.dim(1) == whole.sizes[2] && one.dtype() == whole.dtype,
        kOp, "matrix ", e, " is ", one, ", the first is ", whole.dtype, " (", whole.sizes[1], ", ",
        whole.sizes[2], ")");
    store(one, plan, buffer->data() + e * plan.bytes);
    one.device().synchronize(one.stream());
  }
  return Tensor::from_buffer(std::move(buffer), whole);
}

}  // namespace rbee
