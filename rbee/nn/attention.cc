#include "rbee/nn/attention.h"

#include <array>

#include "rbee/ops/activation.h"

namespace rbee::nn {

Attention::Attention(const WeightScope& layer, const AttentionSpec& spec, const Rope& rope)
    : spec_(spec), rope_(rope) {
  const bool alone = layer.group().alone();
  if (!alone && spec.qk_norm == QkNorm::row) {
    fail(Code::unsupported, "model", "queries and keys have a norm over all heads together ",
         "(OLMo 2, MiniMax M2), which ranks of a group cannot share yet");
  }
  if (!alone && spec.gated) {
    fail(Code::unsupported, "model", "attention has output gates (Qwen3-Next), which ranks of a ",
         "group cannot share yet");
  }
  const group::HeadShare own = share_heads(layer.group().share, spec.heads, spec.kv_heads);
  take_projections(layer, own);
  LinearShape output{
      .in = spec.heads * spec.head_dim, .out = spec.dim, .bias = spec.output_bias, .adapted = true};
  if (!alone) {
    output.inputs = {own.queries.first * spec.head_dim, own.queries.count * spec.head_dim};
  }
  output_ = Linear(layer / "attn_output", output);
  if (spec.sinks) take_sinks(layer, own);
  take_norms(layer, own);
  spec_.heads = own.queries.count;
  spec_.kv_heads = own.keys.count;
}

void Attention::take_projections(const WeightScope& layer, const group::HeadShare& own) {
  const int64_t q_rows = spec_.heads * spec_.head_dim * (spec_.gated ? 2 : 1);
  const int64_t kv_rows = spec_.kv_heads * spec_.head_dim;
  LinearShape q{.in = spec_.dim, .out = q_rows, .bias = spec_.qkv_bias, .adapted = true};
  LinearShape k{.in = spec_.dim, .out = kv_rows, .bias = spec_.qkv_bias, .adapted = true};
  const LinearShape v = k;
  if (layer.is_gguf() && rope_.layout() == RopeLayout::interleaved && !spec_.plain_rows) {
    q.pair_heads = own.queries.count;
    k.pair_heads = own.keys.count;
  }
  // `first`: of the rows of the whole layer; `heads`: those that the rank takes.
  const auto part = [&](std::string_view name, LinearShape shape, int64_t first,
                        const group::Range& heads) {
    if (spec_.fused) {
      shape.first_row = first;
      shape.total_rows = q_rows + 2 * kv_rows;
    }
    const group::Range rows{heads.first * spec_.head_dim, heads.count * spec_.head_dim};
    return Linear(layer / (spec_.fused ? "attn_qkv" : name), part_of(shape, rows));
  };
  query_ = spec_.gated ? Linear(layer / "attn_q", q) : part("attn_q", q, 0, own.queries);
  key_ = part("attn_k", k, q_rows, own.keys);
  value_ = part("attn_v", v, q_rows + kv_rows, own.keys);
  adjoin(layer, {&query_, &key_, &value_});
}

void Attention::take_sinks(const WeightScope& layer, const group::HeadShare& own) {
  const std::vector<float> sinks = layer.is_gguf()
                                       ? (layer / "attn_sinks").values("weight", spec_.heads)
                                       : (layer / "self_attn").values("sinks", spec_.heads);
  const auto first = static_cast<size_t>(own.queries.first);
  const auto count = static_cast<size_t>(own.queries.count);
  spec_.scores.sinks =
      from_host<float>(std::span(sinks).subspan(first, count), {own.queries.count}, layer.device());
}

void Attention::take_norms(const WeightScope& layer, const group::HeadShare& own) {
  if (spec_.qk_norm == QkNorm::none) return;
  const WeightScope q = layer / "attn_q_norm", k = layer / "attn_k_norm";
  NormOptions norm = spec_.head_norm;
  norm.dim = spec_.head_dim;
  if (spec_.qk_norm == QkNorm::each_head) {
    query_head_norm_ = HeadLayerNorm(q, spec_.heads, own.queries, norm);
    key_head_norm_ = HeadLayerNorm(k, spec_.kv_heads, own.keys, norm);
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
              .v = parts[2].split_last(spec_.kv_heads),
              .gate = {}};
  if (spec_.gated) {
    heads.gate = contiguous(heads.q.slice(Axis{2}, spec_.head_dim, spec_.head_dim))
                     .reshape({heads.q.dim(0), spec_.heads * spec_.head_dim});
    heads.q = heads.q.slice(Axis{2}, 0, spec_.head_dim);
  }
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
Attention::Queries Attention::project_and_append(const LayerInput& x, const LayerStep& step) const {
  const std::array layers{&query_, &key_, &value_};
  const bool together = spec_.rotated && spec_.qk_norm == QkNorm::none && !spec_.gated;
  if (together && plain(x, layers)) {
    return {rope_.append({x, query_.weights(), key_.weights(), value_.weights(), spec_.heads},
                         step.positions, step.paged.slots, step.keys, step.values),
            {}};
  }
  Heads heads = project(x);
  if (spec_.qk_norm == QkNorm::turned) {
    if (spec_.rotated) {
      heads.q = rope_(heads.q, step.positions);
      heads.k = rope_(heads.k, step.positions);
    }
    heads.q = query_norm_(heads.q);
    heads.k = key_norm_(heads.k);
  } else if (spec_.rotated) {
    return {rope_.append(heads.q, heads.k, heads.v, step.positions, step.paged.slots, step.keys,
                         step.values),
            heads.gate};
  }
  kv_append_(heads.k, heads.v, step.paged.slots, step.keys, step.values);
  return {heads.q, heads.gate};
}

Tensor Attention::attend(const LayerInput& x, const LayerStep& step) const {
  if (spec_.heads == 0) return empty({x.x.dim(0), 0}, x.x.dtype(), x.x.device());
  const auto [q, gate] = project_and_append(x, step);
  const Tensor attended = paged_attention(q, step.keys, step.values, step.paged, spec_.scores);
  const Tensor rows = attended.reshape({attended.dim(0), spec_.heads * spec_.head_dim});
  return gate.defined() ? rbee::gated(GateOp::sigmoid, gate, rows) : rows;
}

}  // namespace rbee::nn
