#include "rbee/nn/latent_attention.h"

#include "rbee/ops/concat.h"
#include "rbee/ops/elementwise.h"
#include "rbee/ops/matmul.h"

namespace rbee::nn {
namespace {

constexpr Axis kHeads{1}, kElements{2};  // of (tokens, heads, elements)

}  // namespace

LatentAttention::LatentAttention(const WeightScope& layer, const LatentAttentionSpec& spec,
                                 const Rope& rope)
    : spec_(spec), rope_(rope) {
  const group::Range own = share_heads(layer.group().share, spec.heads, spec.heads).queries;
  const int64_t query_dim = spec.plain_dim + spec.rope_dim;
  const group::Range query_rows{own.first * query_dim, own.count * query_dim};
  LinearShape queries{.in = spec.dim, .out = spec.heads * query_dim};
  if (spec.query_rank > 0) {
    query_ = Linear(layer / "attn_q_a", {.in = spec.dim, .out = spec.query_rank});
    query_norm_ = RmsNorm(layer / "attn_q_a_norm", {.dim = spec.query_rank, .eps = spec.norm_eps});
    queries.in = spec.query_rank;
    query_up_ = Linear(layer / "attn_q_b", part_of(queries, query_rows));
  } else {
    query_ = Linear(layer / "attn_q", part_of(queries, query_rows));
  }
  latent_ = Linear(layer / "attn_kv_a_mqa", {.in = spec.dim, .out = spec.rank + spec.rope_dim});
  latent_norm_ = RmsNorm(layer / "attn_kv_a_norm", {.dim = spec.rank, .eps = spec.norm_eps});
  take_latent_matrices(layer, own);
  LinearShape output{.in = spec.heads * spec.value_dim, .out = spec.dim};
  if (!layer.group().alone()) {
    output.inputs = {own.first * spec.value_dim, own.count * spec.value_dim};
  }
  output_ = Linear(layer / "attn_output", output);
  spec_.heads = own.count;
}

// Newer GGUF files have the two apart, and the keys' transposed.
void LatentAttention::take_latent_matrices(const WeightScope& layer, const group::Range& own) {
  const auto of_rank = [&](const Tensor& by_head) {
    return by_head.slice(Axis{0}, own.first, own.count);
  };
  if ((layer / "attn_k_b").has("weight")) {
    const Shape keys{spec_.heads, spec_.rank, spec_.plain_dim};
    const Shape values{spec_.heads, spec_.value_dim, spec_.rank};
    const auto turned = [&](const char* name, const Shape& shape) {
      const Tensor all = (layer / name).array("weight", shape);
      return contiguous(of_rank(all).transpose(Axis{1}, Axis{2}));
    };
    key_up_ = turned("attn_k_b", keys);
    value_up_ = turned("attn_v_b", values);
    return;
  }
  const int64_t rows = spec_.plain_dim + spec_.value_dim;
  const Tensor all = (layer / "attn_kv_b").array("weight", {spec_.heads * rows, spec_.rank});
  const Tensor both = of_rank(all.reshape({spec_.heads, rows, spec_.rank}));
  key_up_ = contiguous(both.slice(Axis{1}, 0, spec_.plain_dim));
  value_up_ =
      contiguous(both.slice(Axis{1}, spec_.plain_dim, spec_.value_dim).transpose(Axis{1}, Axis{2}));
}

// (tokens, heads, rank + rope_dim)
Tensor LatentAttention::queries(const Tensor& x, const Tensor& positions) const {
  Tensor q = query_(x);
  if (spec_.query_rank > 0) q = query_up_(query_norm_(q));
  q = q.reshape({x.dim(0), spec_.heads, spec_.plain_dim + spec_.rope_dim});
  const Tensor plain = q.slice(kElements, 0, spec_.plain_dim).permute({1, 0, 2});
  const Tensor rotated = rope_(q.slice(kElements, spec_.plain_dim, spec_.rope_dim), positions);
  return concat({matmul(plain, key_up_).permute({1, 0, 2}), rotated}, kElements);
}

// (tokens, 1, rank + rope_dim)
Tensor LatentAttention::latents(const Tensor& x, const Tensor& positions) const {
  const Tensor both = latent_(x).unsqueeze(kHeads);
  const Tensor latent = contiguous(both.slice(kElements, 0, spec_.rank));
  const Tensor rotated = rope_(both.slice(kElements, spec_.rank, spec_.rope_dim), positions);
  return concat({latent_norm_(latent), rotated}, kElements);
}

Tensor LatentAttention::attend(const Tensor& x, const LayerStep& step) const {
  if (spec_.heads == 0) return empty({x.dim(0), 0}, x.dtype(), x.device());
  const Tensor latent = latents(x, step.positions);
  kv_append_(latent, latent, step.paged.slots, step.keys, step.values);
  const Tensor attended = paged_attention(queries(x, step.positions), step.keys, step.values,
                                          step.paged, {.scale = spec_.scale});
  const Tensor by_head = attended.slice(kElements, 0, spec_.rank).permute({1, 0, 2});
  const Tensor values = matmul(by_head, value_up_).permute({1, 0, 2});
  return contiguous(values).reshape({x.dim(0), spec_.heads * spec_.value_dim});
}

}  // namespace rbee::nn
