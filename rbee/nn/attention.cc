#include "rbee/nn/attention.h"

#include <array>

namespace rbee::nn {

Attention::Attention(const WeightScope& layer, const AttentionSpec& spec, const Rope& rope)
    : spec_(spec), rope_(rope) {
  const int64_t q_rows = spec.heads * spec.head_dim;
  const int64_t kv_rows = spec.kv_heads * spec.head_dim;
  LinearShape q{.in = spec.dim, .out = q_rows, .bias = spec.qkv_bias, .adapted = true};
  LinearShape k{.in = spec.dim, .out = kv_rows, .bias = spec.qkv_bias, .adapted = true};
  const LinearShape v = k;
  if (layer.is_gguf() && rope.layout() == RopeLayout::interleaved) {
    q.pair_heads = spec.heads;
    k.pair_heads = spec.kv_heads;
  }
  if (spec.fused) {
    const WeightScope all = layer / "attn_qkv";
    const auto part = [&](LinearShape shape, int64_t first) {
      shape.first_row = first;
      shape.total_rows = q_rows + 2 * kv_rows;
      return Linear(all, shape);
    };
    query_ = part(q, 0);
    key_ = part(k, q_rows);
    value_ = part(v, q_rows + kv_rows);
  } else {
    query_ = Linear(layer / "attn_q", q);
    key_ = Linear(layer / "attn_k", k);
    value_ = Linear(layer / "attn_v", v);
  }
  adjoin(layer, {&query_, &key_, &value_});
  output_ = Linear(layer / "attn_output",
                   {.in = q_rows, .out = spec.dim, .bias = spec.output_bias, .adapted = true});
  if (spec.sinks) {
    const std::vector<float> sinks = layer.is_gguf()
                                         ? (layer / "attn_sinks").values("weight", spec.heads)
                                         : (layer / "self_attn").values("sinks", spec.heads);
    spec_.scores.sinks = from_host<float>(sinks, {spec.heads}, layer.device());
  }
  take_norms(layer);
}

void Attention::take_norms(const WeightScope& layer) {
  if (spec_.qk_norm == QkNorm::none) return;
  const WeightScope q = layer / "attn_q_norm", k = layer / "attn_k_norm";
  NormOptions norm = spec_.head_norm;
  norm.dim = spec_.head_dim;
  if (spec_.qk_norm == QkNorm::each_head) {
    query_head_norm_ = HeadLayerNorm(q, spec_.heads, norm);
    key_head_norm_ = HeadLayerNorm(k, spec_.kv_heads, norm);
    return;
  }
  const bool row = spec_.qk_norm == QkNorm::row;
  if (row) norm.dim = spec_.heads * spec_.head_dim;
  query_norm_ = RmsNorm(q, norm);
  if (row) norm.dim = spec_.kv_heads * spec_.head_dim;
  key_norm_ = RmsNorm(k, norm);
}

Attention::Heads Attention::project(const LayerInput& x) const {
  const std::array layers{&query_, &key_, &value_};
  std::vector<Tensor> parts = linear_many(x, layers);
  if (spec_.qk_norm == QkNorm::row) {
    parts[0] = query_norm_(parts[0]);
    parts[1] = key_norm_(parts[1]);
  }
  Heads heads{.q = parts[0].split_last(spec_.heads),
              .k = parts[1].split_last(spec_.kv_heads),
              .v = parts[2].split_last(spec_.kv_heads)};
  if (spec_.qk_norm == QkNorm::head) {
    heads.q = query_norm_(heads.q);
    heads.k = key_norm_(heads.k);
  } else if (spec_.qk_norm == QkNorm::each_head) {
    heads.q = query_head_norm_(heads.q);
    heads.k = key_head_norm_(heads.k);
  }
  return heads;
}

// Writes keys and values to the cache; gives the q that reads them.
Tensor Attention::project_and_append(const LayerInput& x, const LayerStep& step) const {
  const std::array layers{&query_, &key_, &value_};
  if (spec_.rotated && spec_.qk_norm == QkNorm::none && plain(x, layers)) {
    return rope_.append({x, query_.weights(), key_.weights(), value_.weights(), spec_.heads},
                        step.positions, step.paged.slots, step.keys, step.values);
  }
  const Heads heads = project(x);
  if (spec_.rotated) {
    return rope_.append(heads.q, heads.k, heads.v, step.positions, step.paged.slots, step.keys,
                        step.values);
  }
  kv_append_(heads.k, heads.v, step.paged.slots, step.keys, step.values);
  return heads.q;
}

Tensor Attention::attend(const LayerInput& x, const LayerStep& step) const {
  const Tensor q = project_and_append(x, step);
  const Tensor attended = paged_attention(q, step.keys, step.values, step.paged, spec_.scores);
  return attended.reshape({attended.dim(0), spec_.heads * spec_.head_dim});
}

}  // namespace rbee::nn
