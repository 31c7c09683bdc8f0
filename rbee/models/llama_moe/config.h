#pragma once

#include "rbee/models/common_config.h"
#include "rbee/nn/attention.h"
#include "rbee/nn/moe.h"

namespace rbee::models {

// Llama's order of norms with a mixture of experts, by settings alone: GLM-4.5 to 4.7 and Air
// (GLM-4.5 Team 2025), MiniMax M2 (2025), ERNIE 4.5 (Baidu 2025), Hunyuan-A13B (Tencent 2025).
struct LlamaMoeConfig : ModelConfig {
  GateOp activation = GateOp::silu;
  nn::RopeOptions rope;
  nn::Bias qkv_bias = nn::Bias::none;
  nn::Bias output_bias = nn::Bias::none;
  nn::Bias mlp_bias = nn::Bias::none;  // of dense layers
  nn::QkNorm qk_norm = nn::QkNorm::none;
  bool plain_rows = false;  // see nn::AttentionSpec
  std::string_view ffn_norm = "ffn_norm";
  nn::MoeSpec moe;
  std::vector<bool> sparse;  // by layer; false: one MLP
};

LlamaMoeConfig read_llama_moe_config(const ConfigReader& reader);

}  // namespace rbee::models
