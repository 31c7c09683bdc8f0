#include "rbee/nn/moe.h"

#include <array>
#include <numeric>

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

// Whether all of the layer is on the host, and weights come from there.
bool of_host_layer(const WeightScope& layer) {
  const std::shared_ptr<Visitors> visitors = layer.visitors();
  return visitors && &visitors->device() != &layer.device();
}

}  // namespace

Moe::Moe(const WeightScope& layer, const MoeSpec& spec)
    : spec_(spec),
      group_(layer.group().view),
      router_(layer / "ffn_gate_inp",
              {.in = spec.dim,
               .out = spec.experts,
               .bias = spec.swiglu_limit > 0 ? Bias::required : Bias::none}) {
  take_range(layer);
  const WeightScope stacks = layer.for_experts();
  if (&stacks.device() != &layer.device()) trip_ = layer.host_trip();
  if (spec.swiglu_limit > 0) {
    take_biased_experts(stacks);
  } else {
    take_experts(stacks);
  }
  if (trip_ || of_host_layer(layer)) take_visitors(layer, stacks);
  if (spec.choice_bias) {
    const std::string_view leaf = layer.is_gguf() ? "bias" : "e_score_correction_bias";
    const std::vector<float> bias = (layer / "exp_probs_b").values(leaf, spec.experts);
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

void Moe::take_range(const WeightScope& layer) {
  range_ = {0, spec_.experts};
  if (!layer.expert_parallel()) return;
  range_ = layer.group().share.range(spec_.experts, 1);
  std::vector<int32_t> places(static_cast<size_t>(spec_.experts), -1);
  const auto first = places.begin() + range_.first;
  std::iota(first, first + range_.count, 0);
  places_ = from_host<int32_t>(places, {spec_.experts}, layer.device());
}

void Moe::take_scales(const WeightScope& layer) {
  const int64_t experts = range_.count;
  const auto on_device = [&](const std::vector<float>& values, const Shape& shape) {
    return from_host<float>(values, shape, layer.device());
  };
  const auto own = [&](std::string_view part) {
    std::vector<float> all = scales_of_results(layer / part, spec_.experts);
    if (all.empty()) return all;
    const auto first = all.begin() + range_.first;
    return std::vector<float>(first, first + experts);
  };
  std::vector<float> gate = own("ffn_gate_exps");
  std::vector<float> up = own("ffn_up_exps");
  const std::vector<float> down = own("ffn_down_exps");
  if (!gate.empty() || !up.empty()) {
    // Both have the same inputs.
    constexpr auto kNone = static_cast<float>(1 / kInputScale);
    gate.resize(static_cast<size_t>(experts), kNone);
    up.resize(static_cast<size_t>(experts), kNone);
    experts_.gate_scales = cast(on_device(gate, {experts, 1}), layer.activations());
    experts_.up_scales = cast(on_device(up, {experts, 1}), layer.activations());
  }
  if (!down.empty()) experts_.down_scales = on_device(down, {experts});
}

void Moe::take_experts(const WeightScope& layer) {
  take_scales(layer);
  const Shape in{spec_.experts, spec_.ffn_dim, spec_.dim},
      out{spec_.experts, spec_.dim, spec_.ffn_dim};
  columns_ = {0, spec_.ffn_dim};
  if (!places_.defined()) {
    columns_ = ffn_columns(layer / "ffn_down_exps", spec_.ffn_dim, layer.group().share);
  }
  if (has_joined_experts(layer)) return take_joined_experts(layer);
  experts_.gate.weight = (layer / "ffn_gate_exps").experts("weight", in, gate_cut());
  experts_.up.weight = (layer / "ffn_up_exps").experts("weight", in, gate_cut());
  experts_.down.weight = (layer / "ffn_down_exps").experts("weight", out, down_cut());
}

bool Moe::has_joined_experts(const WeightScope& layer) {
  return layer.is_gguf() ? (layer / "ffn_gate_up_exps").has("weight")
                         : (layer / "experts").has("gate_up_proj");
}

// The rows of an expert's gate, then those of up.
void Moe::take_joined_experts(const WeightScope& layer) {
  const int64_t experts = spec_.experts, ffn = spec_.ffn_dim, dim = spec_.dim;
  const bool gguf = layer.is_gguf();
  const auto half = [&](int64_t first) {
    StackCut cut = gate_cut();
    const group::Range own = cut.matrix.rows.value_or(group::Range{0, ffn});
    cut.matrix.rows = group::Range{first + own.first, own.count};
    const Shape both{experts, 2 * ffn, dim};
    return gguf ? (layer / "ffn_gate_up_exps").experts("weight", both, cut)
                : (layer / "experts").experts("gate_up_proj", both, cut);
  };
  experts_.gate.weight = half(0);
  experts_.up.weight = half(ffn);
  const Shape out{experts, dim, ffn};
  experts_.down.weight = gguf ? (layer / "ffn_down_exps").experts("weight", out, down_cut())
                              : (layer / "experts").experts("down_proj", out, down_cut());
}

StackCut Moe::gate_cut() const {
  StackCut cut{.experts = range_, .matrix = {}};
  if (columns_.count < spec_.ffn_dim) cut.matrix.rows = columns_;
  return cut;
}

StackCut Moe::down_cut() const {
  StackCut cut{.experts = range_, .matrix = {}};
  if (columns_.count < spec_.ffn_dim) cut.matrix.inputs = columns_;
  return cut;
}

Tensor Moe::own_rows(const Tensor& x) const {
  if (range_.count == spec_.experts) return x;
  return contiguous(x.slice(Axis{0}, range_.first, range_.count));
}

Tensor Moe::own_columns(const Tensor& x) const {
  if (columns_.count == spec_.ffn_dim) return own_rows(x);
  return contiguous(x.slice(Axis{1}, columns_.first, columns_.count));
}

// Hugging Face has the rows of gate and up in turn.
void Moe::take_biased_experts(const WeightScope& layer) {
  const int64_t experts = spec_.experts, ffn = spec_.ffn_dim;
  if (layer.is_gguf()) {
    take_experts(layer);
    if (experts_.gate_scales.defined() || experts_.down_scales.defined()) {
      fail(Code::unsupported, "load", "the experts of ", layer.role(), " have biases and, ",
           "in NVFP4, scales, which is not read");
    }
    experts_.gate.bias = own_columns((layer / "ffn_gate_exps").array("bias", {experts, ffn}));
    experts_.up.bias = own_columns((layer / "ffn_up_exps").array("bias", {experts, ffn}));
    experts_.down.bias = own_rows((layer / "ffn_down_exps").array("bias", {experts, spec_.dim}));
  } else {
    const WeightScope all = layer / "experts";
    columns_ = {0, ffn};
    if (!places_.defined()) {
      columns_ = layer.group().share.range(ffn, info(DType::mxfp4).block_size);
    }
    const Shape in{experts, ffn, spec_.dim}, out{experts, spec_.dim, ffn};
    experts_.gate.weight = all.mxfp4_experts("gate_up_proj", in, 0, 2, gate_cut());
    experts_.up.weight = all.mxfp4_experts("gate_up_proj", in, 1, 2, gate_cut());
    experts_.down.weight = all.mxfp4_experts("down_proj", out, 0, 1, down_cut());
    const Tensor both =
        all.array("gate_up_proj_bias", {experts, 2 * ffn}).reshape({experts, ffn, 2});
    const auto part = [&](int64_t first) {
      return own_columns(contiguous(both.slice(Axis{2}, first, 1)).reshape({experts, ffn}));
    };
    experts_.gate.bias = part(0);
    experts_.up.bias = part(1);
    experts_.down.bias = own_rows(all.array("down_proj_bias", {experts, spec_.dim}));
  }
  // The sum over the ranks has it once.
  if (columns_.first > 0 || columns_.count == 0) experts_.down.bias = {};
  take_limits(layer);
}

void Moe::take_limits(const WeightScope& layer) {
  const float limits[] = {spec_.swiglu_limit, -spec_.swiglu_limit};
  const Tensor both = cast(from_host<float>(limits, {2}, layer.device()), layer.activations());
  experts_.limit = both.slice(Axis{0}, 0, 1);
  experts_.lower_limit = both.slice(Axis{0}, 1, 1);
}

void Moe::take_visitors(const WeightScope& layer, const WeightScope& stacks) {
  // The stored form of Hugging Face's MXFP4 is not that of kernels, and of joined experts no
  // matrix is whole by itself.
  const bool mxfp4 = !layer.is_gguf() && spec_.swiglu_limit > 0;
  if (mxfp4 || has_joined_experts(stacks)) return;
  visitors_ = layer.visitors();
  if (!visitors_) return;
  const int64_t experts = spec_.experts, ffn = spec_.ffn_dim, dim = spec_.dim;
  const std::array<std::string_view, 3> leaves{"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"};
  const std::array<Shape, 3> shapes{
      Shape{experts, ffn, dim}, {experts, ffn, dim}, {experts, dim, ffn}};
  std::array<std::vector<Tensor>, 3> parts;
  for (size_t i = 0; i < leaves.size(); ++i) {
    parts[i] = (stacks / leaves[i]).mapped_experts("weight", shapes[i]);
    if (parts[i].empty()) return visitors_.reset();
  }
  for (size_t i = 0; i < leaves.size(); ++i) {
    const DType dtype = parts[i].front().dtype();
    const size_t index =
        visitors_->add_experts(std::move(parts[i]), shapes[i], dtype, spec_.route.chosen);
    if (i == 0) first_ = index;
  }
  const auto there = [&](const Tensor& x, DType dtype) {
    return x.defined() ? cast(x.to(visitors_->device()), dtype) : x;
  };
  const DType activations = visitors_->activations();
  visiting_ = {.gate = {.weight = {}, .bias = there(experts_.gate.bias, activations)},
               .up = {.weight = {}, .bias = there(experts_.up.bias, activations)},
               .down = {.weight = {}, .bias = there(experts_.down.bias, activations)},
               .gate_scales = there(experts_.gate_scales, activations),
               .up_scales = there(experts_.up_scales, activations),
               .down_scales = there(experts_.down_scales, DType::f32),
               .limit = there(experts_.limit, activations),
               .lower_limit = there(experts_.lower_limit, activations)};
}

Tensor Moe::activated(const Experts& experts, const Tensor& gate, const Tensor& up) const {
  if (!experts.limit.defined()) return gated(spec_.activation, gate, up);
  const Tensor clamped =
      binary(BinaryOp::maximum, binary(BinaryOp::minimum, up, experts.limit), experts.lower_limit);
  return affine(clamped, 1, 1) *
         unary(UnaryOp::quick_gelu, binary(BinaryOp::minimum, gate, experts.limit));
}

Tensor Moe::shared(const LayerInput& x) const {
  const Mlp& mlp = shared_.front();
  const Tensor y = mlp.down().partial(mlp.hidden(x), x.lora);
  return spec_.shared_is_gated ? y * unary(UnaryOp::sigmoid, shared_gate_(x.x)) : y;
}

Tensor Moe::hidden(const Experts& experts, const Tensor& x, const Routing& routing) const {
  const std::array<const LinearWeights*, 2> gate_and_up{&experts.gate, &experts.up};
  const bool scaled = experts.gate_scales.defined();
  std::vector<Tensor> parts =
      expert_linear(scaled ? affine(x, kInputScale, 0) : x, routing.ids, gate_and_up);
  if (scaled) {
    const Tensor choices = routing.ids.reshape({routing.ids.numel()});
    parts[0] = parts[0] * index_select(experts.gate_scales, Axis{0}, choices);
    parts[1] = parts[1] * index_select(experts.up_scales, Axis{0}, choices);
  }
  return activated(experts, parts[0], parts[1]);
}

Tensor Moe::sum(const Experts& experts, const Tensor& hidden, const Routing& routing) {
  const bool scaled = experts.down_scales.defined();
  const std::array<const LinearWeights*, 1> down{&experts.down};
  const Tensor each =
      expert_linear(scaled ? affine(hidden, kInputScale, 0) : hidden, routing.ids, down).front();
  if (!scaled) return expert_sum(each, routing.weights);
  const Tensor choices = routing.ids.reshape({routing.ids.numel()});
  const Tensor scales = index_select(experts.down_scales, Axis{0}, choices);
  return expert_sum(each, routing.weights * scales.reshape(routing.weights.shape()));
}

Tensor Moe::chosen(const Tensor& x, const Routing& routing) const {
  if (idle()) return zeros({x.dim(0), spec_.dim}, x.dtype(), x.device());
  if (!places_.defined()) return sum(experts_, hidden(experts_, x, routing), routing);
  // Other ranks' experts have rows of zeros.
  const Tensor ids = index_select(places_, Axis{0}, routing.ids.reshape({routing.ids.numel()}));
  const Routing own{.ids = ids.reshape(routing.ids.shape()), .weights = routing.weights};
  return sum(experts_, hidden(experts_, x, own), own);
}

Tensor Moe::chosen_of_visitors(const Tensor& x, const Routing& routing) const {
  const auto compute = [&](WeightStream::Turn& turn, const Tensor& there, const Routing& routed) {
    Experts experts = visiting_;
    experts.gate.weight = turn.take(first_);
    experts.up.weight = turn.take(first_ + 1);
    const Tensor rows = hidden(experts, there, routed);
    turn.give_back();
    experts.down.weight = turn.take(first_ + 2);
    return sum(experts, rows, routed);
  };
  Device& device = visitors_->device();
  if (&x.device() == &device) {
    WeightStream::Turn turn(visitors_->stream());
    return compute(turn, x, routing);
  }
  // The rows of a layer that is whole on the host go there and back.
  const auto work = [&](WeightStream::Turn& turn, const Tensor& there) {
    const Routing routed{.ids = routing.ids.to(device), .weights = routing.weights.to(device)};
    return std::vector{compute(turn, there, routed)};
  };
  return visitors_->run(x, work).front();
}

Tensor Moe::partial(const LayerInput& input) const {
  const Tensor& x = input.x;
  const Routing routing = route_experts(cast(router_(x), DType::f32), spec_.route);
  const bool visit = visitors_ && visitors_->come_for(x.dim(0), spec_.route.chosen, spec_.experts);
  if (trip_ == nullptr || visit) {
    const Tensor y = visit ? chosen_of_visitors(x, routing) : chosen(x, routing);
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
