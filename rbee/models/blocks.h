#pragma once
// The kinds of layers; a family chooses one and gives its spec.

#include "rbee/models/decoder.h"
#include "rbee/nn/mlp.h"
#include "rbee/nn/moe.h"

namespace rbee::models {

struct BlockSpec {
  nn::NormOptions norm;  // of all norms of the layer
  nn::AttentionSpec attention;
  nn::MlpSpec mlp;
  std::string_view ffn_norm = "ffn_norm";  // the second norm of a PreNormBlock or a MoeBlock
  float branch_scale = 1;                  // of what a PreNormBlock's branches add
};

// x + attention(norm(x)), then x + mlp(norm(x)): Touvron et al. 2023, section 2.2.
// Takes attn_norm and spec.ffn_norm beside what attention and MLP take.
class PreNormBlock final : public Block {
 public:
  PreNormBlock(const nn::WeightScope& layer, const BlockSpec& spec, const nn::Rope& rope);
  void operator()(nn::Residual& x, const nn::LayerStep& step) const override;

 private:
  nn::RmsNorm attention_norm_;
  nn::Attention attention_;
  nn::RmsNorm ffn_norm_;
  nn::Mlp mlp_;
  float branch_scale_;
};

// The same with a mixture of experts for the MLP: Jiang et al. 2024, "Mixtral of Experts",
// section 2.
class MoeBlock final : public Block {
 public:
  // Takes what a pre-norm block takes, but the weights of nn::Moe instead of the MLP's. Does not
  // read spec.mlp.
  MoeBlock(const nn::WeightScope& layer, const BlockSpec& spec, const nn::MoeSpec& moe,
           const nn::Rope& rope);
  void operator()(nn::Residual& x, const nn::LayerStep& step) const override;
  bool has_cpu_moe() const override { return moe_.on_host(); }

 private:
  nn::RmsNorm attention_norm_;
  nn::Attention attention_;
  nn::RmsNorm ffn_norm_;
  nn::Moe moe_;
};

// x + norm(attention(x)), then x + norm(mlp(x)): OLMo Team 2025, "2 OLMo 2 Furious", section 3.2.
// Takes post_attention_norm and post_ffw_norm beside what attention and MLP take.
class PostNormBlock final : public Block {
 public:
  PostNormBlock(const nn::WeightScope& layer, const BlockSpec& spec, const nn::Rope& rope);
  void operator()(nn::Residual& x, const nn::LayerStep& step) const override;

 private:
  nn::Attention attention_;
  nn::RmsNorm post_attention_norm_;
  nn::Mlp mlp_;
  nn::RmsNorm post_ffn_norm_;
};

// x + norm(attention(norm(x))), then x + norm(mlp(norm(x))): Gemma Team 2024, section 2.
// Takes post_attention_norm and post_ffw_norm beside what a pre-norm block takes.
class SandwichNormBlock final : public Block {
 public:
  SandwichNormBlock(const nn::WeightScope& layer, const BlockSpec& spec, const nn::Rope& rope);
  void operator()(nn::Residual& x, const nn::LayerStep& step) const override;

 private:
  nn::RmsNorm attention_norm_;
  nn::Attention attention_;
  nn::RmsNorm post_attention_norm_;
  nn::RmsNorm ffn_norm_;
  nn::Mlp mlp_;
  nn::RmsNorm post_ffn_norm_;
};

}  // namespace rbee::models
