#include "rbee/models/blocks.h"

namespace rbee::models {
namespace {

// The MLP of a layer, which evens out that the ranks have unlike numbers of heads.
nn::MlpSpec mlp_beside_heads(const nn::WeightScope& layer, const BlockSpec& spec) {
  nn::MlpSpec out = spec.mlp;
  group::Share share = layer.group().share;
  if (share.alone()) return out;
  const nn::AttentionSpec& attention = spec.attention;
  for (share.rank = 0; share.rank < share.ranks; ++share.rank) {
    const group::HeadShare own = share_heads(share, attention.heads, attention.kv_heads);
    // Rows of queries, keys and values, and the output's columns.
    const int64_t heads = 2 * own.queries.count + 2 * own.keys.count;
    out.beside.push_back(static_cast<double>(heads * attention.head_dim * attention.dim));
  }
  return out;
}

}  // namespace

PreNormBlock::PreNormBlock(const nn::WeightScope& layer, const BlockSpec& spec,
                           const nn::Rope& rope)
    : attention_norm_(layer / "attn_norm", spec.norm),
      attention_(layer, spec.attention, rope),
      ffn_norm_(layer / spec.ffn_norm, spec.norm),
      mlp_(layer, mlp_beside_heads(layer, spec)),
      branch_scale_(spec.branch_scale) {}

void PreNormBlock::operator()(nn::Residual& x, const nn::LayerStep& step) const {
  const Tensor attended = attention_.attend(x.normed_input(attention_norm_), step);
  x.add(attention_.output(), attended, branch_scale_);
  x.keep_rows(step.logit_rows);
  x.add(mlp_.down(), mlp_.hidden(x.normed_input(ffn_norm_)), branch_scale_);
}

MoeBlock::MoeBlock(const nn::WeightScope& layer, const BlockSpec& spec, const nn::MoeSpec& moe,
                   const nn::Rope& rope)
    : attention_norm_(layer / "attn_norm", spec.norm),
      attention_(layer, spec.attention, rope),
      ffn_norm_(layer / spec.ffn_norm, spec.norm),
      moe_(layer, moe) {}

void MoeBlock::operator()(nn::Residual& x, const nn::LayerStep& step) const {
  x.add(attention_.output(), attention_.attend(x.normed_input(attention_norm_), step));
  x.keep_rows(step.logit_rows);
  x.add_partial(moe_.partial(x.input(x.norm(ffn_norm_))), moe_.group());
}

PostNormBlock::PostNormBlock(const nn::WeightScope& layer, const BlockSpec& spec,
                             const nn::Rope& rope)
    : attention_(layer, spec.attention, rope),
      post_attention_norm_(layer / "post_attention_norm", spec.norm),
      mlp_(layer, mlp_beside_heads(layer, spec)),
      post_ffn_norm_(layer / "post_ffw_norm", spec.norm) {}

void PostNormBlock::operator()(nn::Residual& x, const nn::LayerStep& step) const {
  x.add(post_attention_norm_(attention_(x.input(x.value()), step)));
  x.keep_rows(step.logit_rows);
  x.add(post_ffn_norm_(mlp_(x.input(x.value()))));
}

SandwichNormBlock::SandwichNormBlock(const nn::WeightScope& layer, const BlockSpec& spec,
                                     const nn::Rope& rope)
    : attention_norm_(layer / "attn_norm", spec.norm),
      attention_(layer, spec.attention, rope),
      post_attention_norm_(layer / "post_attention_norm", spec.norm),
      ffn_norm_(layer / "ffn_norm", spec.norm),
      mlp_(layer, mlp_beside_heads(layer, spec)),
      post_ffn_norm_(layer / "post_ffw_norm", spec.norm) {}

void SandwichNormBlock::operator()(nn::Residual& x, const nn::LayerStep& step) const {
  x.add(post_attention_norm_(attention_(x.normed_input(attention_norm_), step)));
  x.keep_rows(step.logit_rows);
  x.add(post_ffn_norm_(mlp_(x.normed_input(ffn_norm_))));
}

}  // namespace rbee::models
