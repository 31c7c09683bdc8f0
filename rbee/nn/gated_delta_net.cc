#include "rbee/nn/gated_delta_net.h"

#include <cmath>

#include "rbee/ops/activation.h"
#include "rbee/ops/concat.h"
#include "rbee/ops/elementwise.h"
#include "rbee/ops/norm.h"

namespace rbee::nn {
namespace {

constexpr Axis kRows{0}, kColumns{1}, kElements{2};
constexpr float kUnitEps = 1e-6f;  // within the root of an L2 norm

// (size), all `value`.
Tensor filled(int64_t size, double value, const WeightScope& scope) {
  Tensor out = empty({size}, scope.activations(), scope.device());
  fill_(out, value);
  return out;
}

// (tokens, heads, n) as (tokens, heads * n).
Tensor joined(const Tensor& x) {
  return contiguous(x).reshape({x.dim(0), x.dim(1) * x.dim(2)});
}

}  // namespace

GatedDeltaNet::GatedDeltaNet(const WeightScope& layer, const GatedDeltaNetSpec& spec)
    : spec_(spec) {
  if (!layer.group().alone()) {
    fail(Code::unsupported, "model", "layers with states (gated delta net) cannot be shared by ",
         "ranks of a group yet");
  }
  take_projections(layer);
  take_rule(layer);
  norm_ = (layer / "ssm_norm").vector("weight", spec.value_dim);
  output_ = Linear(layer / "ssm_out", {.in = spec.values(), .out = spec.dim});
}

void GatedDeltaNet::take_projections(const WeightScope& layer) {
  const auto take = [&](std::string_view name, int64_t rows) {
    inputs_.emplace_back(layer / name, LinearShape{.in = spec_.dim, .out = rows});
  };
  joined_inputs_ = (layer / "ssm_in").has("weight");
  joined_gates_ = (layer / "ssm_ba").has("weight");
  if (joined_inputs_) {
    take("ssm_in", 2 * spec_.keys() + 2 * spec_.values());
  } else {
    take("attn_qkv", 2 * spec_.keys() + spec_.values());
    take("attn_gate", spec_.values());
  }
  if (joined_gates_) {
    take("ssm_ba", 2 * spec_.value_heads);
  } else {
    take("ssm_beta", spec_.value_heads);
    take("ssm_alpha", spec_.value_heads);
  }
}

// GGUF files have -exp(A_log) and no weights below "ssm_a"; Hugging Face has A_log and dt_bias
// beside the layers, and an axis of 1 in the convolution.
void GatedDeltaNet::take_rule(const WeightScope& layer) {
  const int64_t heads = spec_.value_heads, width = spec_.taps + 1;
  const int64_t channels = spec_.state().channels;
  const bool gguf = layer.is_gguf();
  const WeightScope beside = layer / "linear_attn";
  std::vector<float> decay = gguf ? layer.values("ssm_a", heads) : beside.values("A_log", heads);
  if (!gguf) {
    for (float& rate : decay) rate = -std::exp(rate);
  }
  const std::vector<float> bias =
      gguf ? (layer / "ssm_dt").values("bias", heads) : beside.values("dt_bias", heads);
  decay_ = from_host<float>(decay, {heads}, layer.device());
  a_bias_ = from_host<float>(bias, {heads}, layer.device());
  const Shape stored = gguf ? Shape{channels, width} : Shape{channels, 1, width};
  const Tensor weight = (layer / "ssm_conv1d").array("weight", stored);
  convolution_ =
      contiguous(cast(weight, DType::f32).reshape({channels, width}).transpose(kRows, kColumns));
  // x * rsqrt(sum(x^2) + eps) is an RMS norm with eps / n, times n^-1/2. Queries are scaled by
  // another n^-1/2.
  const auto size = static_cast<double>(spec_.key_dim);
  key_unit_ = filled(spec_.key_dim, 1 / std::sqrt(size), layer);
  query_unit_ = filled(spec_.key_dim, 1 / size, layer);
}

void GatedDeltaNet::part_inputs(const Tensor& rows, Projections& out) const {
  const Tensor heads = rows.split_last(spec_.key_heads);
  const int64_t keys = spec_.key_dim, values = spec_.values() / spec_.key_heads;
  const auto part = [&](int64_t first, int64_t count) {
    return joined(heads.slice(kElements, first, count));
  };
  out.mixed = concat({part(0, keys), part(keys, keys), part(2 * keys, values)}, kColumns);
  out.z = part(2 * keys + values, values);
}

void GatedDeltaNet::part_gates(const Tensor& rows, Projections& out) const {
  const Tensor heads = rows.split_last(spec_.key_heads);
  const int64_t each = spec_.value_heads / spec_.key_heads;
  out.b = joined(heads.slice(kElements, 0, each));
  out.a = joined(heads.slice(kElements, each, each));
}

GatedDeltaNet::Projections GatedDeltaNet::project(const LayerInput& x) const {
  std::vector<const Linear*> layers;
  for (const Linear& layer : inputs_) layers.push_back(&layer);
  const std::vector<Tensor> parts = linear_many(x, layers);
  Projections out;
  size_t next = 0;
  if (joined_inputs_) {
    part_inputs(parts[next++], out);
  } else {
    out.mixed = parts[next++];
    out.z = parts[next++];
  }
  if (joined_gates_) {
    part_gates(parts[next], out);
  } else {
    out.b = parts[next++];
    out.a = parts[next];
  }
  return out;
}

Tensor GatedDeltaNet::attend(const LayerInput& x, const LayerStep& step) const {
  const Projections in = project(x);
  const SequenceStates batch{
      .seq_starts = step.paged.seq_starts, .positions = step.positions, .slots = step.state_slots};
  Tensor tail = step.state.tail, matrix = step.state.matrix;
  const Tensor mixed = causal_conv_(in.mixed, convolution_, tail, batch);
  const auto heads = [&](int64_t first, int64_t size, int64_t count) {
    return mixed.slice(kColumns, first, size).split_last(count);
  };
  const float eps = kUnitEps / static_cast<float>(spec_.key_dim);
  const int64_t keys = spec_.keys();
  const Tensor y = delta_rule_({.q = rms_norm(heads(0, keys, spec_.key_heads), query_unit_, eps),
                                .k = rms_norm(heads(keys, keys, spec_.key_heads), key_unit_, eps),
                                .v = heads(2 * keys, spec_.values(), spec_.value_heads),
                                .a = in.a,
                                .b = in.b,
                                .decay = decay_,
                                .a_bias = a_bias_,
                                .tiled = spec_.tiled},
                               matrix, batch);
  return gated(GateOp::silu, in.z, joined(rms_norm(y, norm_, spec_.eps)));
}

}  // namespace rbee::nn
