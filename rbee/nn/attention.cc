#include "rbee/nn/attention.h"

#include <array>

namespace rbee::nn {

Attention::Attention(const WeightScope& layer, const AttentionSpec& spec, const Rope& rope)
    : spec_(spec), rope_(rope) {
  const int64_t q_rows = spec.heads * spec.head_dim;
  const int64_t kv_rows = spec.kv_heads * spec.head_dim;
  const LinearShape q{.in = spec.dim, .out = q_rows, .bias = spec.qkv_bias};
  const LinearShape kv{.in = spec.dim, .out = kv_rows, .bias = spec.qkv_bias};
  if (spec.fused) {
    const WeightScope all = layer / "attn_qkv";
    const auto part = [&](LinearShape shape, int64_t first) {
      shape.first_row = first;
      shape.total_rows = q_rows + 2 * kv_rows;
      return Linear(all, shape);
    };
    query_ = part(q, 0);
    key_ = part(kv, q_rows);
    value_ = part(kv, q_rows + kv_rows);
  } else {
    query_ = Linear(layer / "attn_q", q);
    key_ = Linear(layer / "attn_k", kv);
    value_ = Linear(layer / "attn_v", kv);
  }
  adjoin({&query_, &key_, &value_});
  output_ =
      Linear(layer / "attn_output", {.in = q_rows, .out = spec.dim, .bias = spec.output_bias});
  if (spec.sinks) {
    const std::vector<float> sinks = layer.is_gguf()
                                         ? (layer / "attn_sinks").values("weight", spec.heads)
                                         : (layer / "self_attn").values("sinks", spec.heads);
    spec_.scores.sinks = from_host<float>(sinks, {spec.heads}, layer.device());
  }
  if (!spec.qk_norm) return;
  query_norm_ = RmsNorm(layer / "attn_q_norm", spec.head_norm);
  key_norm_ = RmsNorm(layer / "attn_k_norm", spec.head_norm);
}

Attention::Heads Attention::project(const LinearInput& x) const {
  const std::array<const LinearWeights*, 3> weights{&query_.weights(), &key_.weights(),
                                                    &value_.weights()};
  const std::vector<Tensor> parts = linear_many(x, weights);
  return {.q = parts[0].split_last(spec_.heads),
          .k = parts[1].split_last(spec_.kv_heads),
          .v = parts[2].split_last(spec_.kv_heads)};
}

Tensor Attention::attend(const LinearInput& x, const LayerStep& step) const {
  auto [q, k, v] = project(x);
  if (spec_.qk_norm) {
    q = query_norm_(q);
    k = key_norm_(k);
  }
  q = rope_.append(q, k, v, step.positions, step.paged.slots, step.keys, step.values);
  const Tensor attended = paged_attention(q, step.keys, step.values, step.paged, spec_.scores);
  return attended.reshape({attended.dim(0), spec_.heads * spec_.head_dim});
}

}  // namespace rbee::nn
