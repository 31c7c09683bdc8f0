#include "rbee/nn/moe.h"

#include <array>

#include "rbee/ops/activation.h"
#include "rbee/ops/elementwise.h"
#include "rbee/ops/indexing.h"

namespace rbee::nn {
namespace {

// Weights with scales beside them are as large as 2688 by themselves, so that sums of f16 would
// overflow: inputs take this part of the scales, the rest, which in f16 has to be below 65520, is
// left for results.
constexpr double kInputScale = 1.0 / 4096;

std::vector<float> scales_of_results(const WeightScope& matrix, int64_t experts) {
  std::vector<float> scales = matrix.expert_scales("weight", experts);
  for (float& scale : scales) scale /= static_cast<float>(kInputScale);
  return scales;
}

}  // namespace

Moe::Moe(const WeightScope& layer, const MoeSpec& spec)
    : spec_(spec),
      group_(layer.group().view),
      router_(layer / "ffn_gate_inp",
              {.in = spec.dim,
               .out = spec.experts,
               .bias = spec.swiglu_limit > 0 ? Bias::required : Bias::none}) {
  const WeightScope stacks = layer.for_experts();
  if (&stacks.device() != &layer.device()) trip_ = layer.host_trip();
  if (spec.swiglu_limit > 0) {
    take_biased_experts(stacks);
  } else {
    take_experts(stacks);
  }
  if (spec.choice_bias) {
    const std::vector<float> bias =
        layer.is_gguf() ? (layer / "exp_probs_b").values("bias", spec.experts)
                        : (layer / "ffn_gate_inp").values("e_score_correction_bias", spec.experts);
    spec_.route.bias = from_host<float>(bias, {spec.experts}, layer.device());
  }
  if (spec.shared_ffn_dim == 0) return;
  shared_.emplace_back(layer, MlpSpec{.dim = spec.dim,
                                      .ffn_dim = spec.shared_ffn_dim,
                                      .activation = spec.activation,
                                      .suffix = "_shexp"});
  if (spec.shared_is_gated) {
    shared_gate_ = Linear(layer / "ffn_gate_inp_shexp", {.in = spec.dim, .out = 1});
  }
}

void Moe::take_scales(const WeightScope& layer) {
  const int64_t experts = spec_.experts;
  const auto on_device = [&](const std::vector<float>& values, const Shape& shape) {
    return from_host<float>(values, shape, layer.device());
  };
  std::vector<float> gate = scales_of_results(layer / "ffn_gate_exps", experts);
  std::vector<float> up = scales_of_results(layer / "ffn_up_exps", experts);
  const std::vector<float> down = scales_of_results(layer / "ffn_down_exps", experts);
  if (!gate.empty() || !up.empty()) {
    // Both have the same inputs.
    constexpr auto kNone = static_cast<float>(1 / kInputScale);
    gate.resize(static_cast<size_t>(experts), kNone);
    up.resize(static_cast<size_t>(experts), kNone);
    gate_scales_ = cast(on_device(gate, {experts, 1}), layer.activations());
    up_scales_ = cast(on_device(up, {experts, 1}), layer.activations());
  }
  if (!down.empty()) down_scales_ = on_device(down, {experts});
}

void Moe::take_experts(const WeightScope& layer) {
  take_scales(layer);
  const Shape in{spec_.experts, spec_.ffn_dim, spec_.dim},
      out{spec_.experts, spec_.dim, spec_.ffn_dim};
  MatrixCut rows, inputs;
  columns_ = ffn_columns(layer / "ffn_down_exps", spec_.ffn_dim);
  if (columns_.count < spec_.ffn_dim) rows.rows = inputs.inputs = columns_;
  gate_.weight = (layer / "ffn_gate_exps").experts("weight", in, rows);
  up_.weight = (layer / "ffn_up_exps").experts("weight", in, rows);
  down_.weight = (layer / "ffn_down_exps").experts("weight", out, inputs);
}

Tensor Moe::own_columns(const Tensor& x) const {
  if (columns_.count == spec_.ffn_dim) return x;
  return contiguous(x.slice(Axis{1}, columns_.first, columns_.count));
}

// Hugging Face has the rows of gate and up in turn.
void Moe::take_biased_experts(const WeightScope& layer) {
  const int64_t experts = spec_.experts, ffn = spec_.ffn_dim;
  if (layer.is_gguf()) {
    take_experts(layer);
    if (gate_scales_.defined() || down_scales_.defined()) {
      fail(Code::unsupported, "load", "the experts of ", layer.role(), " have biases and, ",
           "in NVFP4, scales, which is not read");
    }
    gate_.bias = own_columns((layer / "ffn_gate_exps").array("bias", {experts, ffn}));
    up_.bias = own_columns((layer / "ffn_up_exps").array("bias", {experts, ffn}));
    down_.bias = (layer / "ffn_down_exps").array("bias", {experts, spec_.dim});
  } else {
    const WeightScope all = layer / "experts";
    columns_ = layer.group().share.range(ffn, info(DType::mxfp4).block_size);
    MatrixCut rows, inputs;
    if (columns_.count < ffn) rows.rows = inputs.inputs = columns_;
    gate_.weight = all.mxfp4_experts("gate_up_proj", {experts, ffn, spec_.dim}, 0, 2, rows);
    up_.weight = all.mxfp4_experts("gate_up_proj", {experts, ffn, spec_.dim}, 1, 2, rows);
    down_.weight = all.mxfp4_experts("down_proj", {experts, spec_.dim, ffn}, 0, 1, inputs);
    const Tensor both =
        all.array("gate_up_proj_bias", {experts, 2 * ffn}).reshape({experts, ffn, 2});
    const auto part = [&](int64_t first) {
      return own_columns(contiguous(both.slice(Axis{2}, first, 1)).reshape({experts, ffn}));
    };
    gate_.bias = part(0);
    up_.bias = part(1);
    down_.bias = all.array("down_proj_bias", {experts, spec_.dim});
  }
  // The sum over the ranks has it once.
  if (columns_.first > 0 || columns_.count == 0) down_.bias = {};
  take_limits(layer);
}

void Moe::take_limits(const WeightScope& layer) {
  const float limits[] = {spec_.swiglu_limit, -spec_.swiglu_limit};
  const Tensor both = cast(from_host<float>(limits, {2}, layer.device()), layer.activations());
  limit_ = both.slice(Axis{0}, 0, 1);
  lower_limit_ = both.slice(Axis{0}, 1, 1);
}

Tensor Moe::activated(const Tensor& gate, const Tensor& up) const {
  if (!limit_.defined()) return gated(spec_.activation, gate, up);
  const Tensor clamped =
      binary(BinaryOp::maximum, binary(BinaryOp::minimum, up, limit_), lower_limit_);
  return affine(clamped, 1, 1) *
         unary(UnaryOp::quick_gelu, binary(BinaryOp::minimum, gate, limit_));
}

Tensor Moe::shared(const LayerInput& x) const {
  const Mlp& mlp = shared_.front();
  const Tensor y = mlp.down().partial(mlp.hidden(x), x.lora);
  return spec_.shared_is_gated ? y * unary(UnaryOp::sigmoid, shared_gate_(x.x)) : y;
}

// With the scales of what they multiply.
Tensor Moe::weights_of(const Routing& routing) const {
  if (!down_scales_.defined()) return routing.weights;
  const Tensor choices = routing.ids.reshape({routing.ids.numel()});
  return routing.weights *
         index_select(down_scales_, Axis{0}, choices).reshape(routing.weights.shape());
}

Tensor Moe::chosen(const Tensor& x, const Routing& routing) const {
  if (columns_.count == 0) return zeros({x.dim(0), spec_.dim}, x.dtype(), x.device());
  const std::array<const LinearWeights*, 2> gate_and_up{&gate_, &up_};
  const bool scaled = gate_scales_.defined();
  std::vector<Tensor> parts =
      expert_linear(scaled ? affine(x, kInputScale, 0) : x, routing.ids, gate_and_up);
  if (scaled) {
    const Tensor choices = routing.ids.reshape({routing.ids.numel()});
    parts[0] = parts[0] * index_select(gate_scales_, Axis{0}, choices);
    parts[1] = parts[1] * index_select(up_scales_, Axis{0}, choices);
  }
  Tensor hidden = activated(parts[0], parts[1]);
  if (down_scales_.defined()) hidden = affine(hidden, kInputScale, 0);
  const std::array<const LinearWeights*, 1> down{&down_};
  const Tensor each = expert_linear(hidden, routing.ids, down).front();
  return expert_sum(each, weights_of(routing));
}

Tensor Moe::partial(const LayerInput& input) const {
  const Tensor& x = input.x;
  const Routing routing = route_experts(cast(router_(x), DType::f32), spec_.route);
  if (trip_ == nullptr) {
    const Tensor y = chosen(x, routing);
    return shared_.empty() ? y : y + shared(input);
  }
  const std::array<Tensor, 3> there{x, routing.ids, routing.weights};
  Tensor beside;
  const Tensor y = trip_->run(there, [&](std::span<const Tensor> copies) {
    // Queued here, so that the device computes it meanwhile.
    if (!shared_.empty()) beside = shared(input);
    const Routing routed{.ids = copies[1], .weights = copies[2]};
    return cast(chosen(cast(copies[0], DType::f32), routed), x.dtype());
  });
  return beside.defined() ? y + beside : y;
}

}  // namespace rbee::nn
