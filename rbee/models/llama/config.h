#pragma once

#include "rbee/models/common_config.h"

namespace rbee::models {

// Llama 2, 3 and 3.1 (Touvron et al. 2023, Grattafiori et al. 2024), SmolLM2, Mistral 7B (Jiang et
// al. 2023), Mistral Small 3 and Ministral 3 (Mistral AI 2025), alone or as the text of a
// multimodal checkpoint; Granite 3 (IBM 2024), with multipliers; SmolLM3 (Bakouch et al. 2025),
// where every fourth layer has no position encoding; Seed-OSS (ByteDance 2025), with biases on q, k
// and v; ERNIE 4.5 of 0.3B (Baidu 2025), which turns neighbours; Hunyuan of 0.5B to 7B (Tencent
// 2025), with norms behind the rotation.
struct LlamaConfig : ModelConfig {
  GateOp activation = GateOp::silu;
  nn::RopeOptions rope;
  int64_t window = 0;                        // Mistral: keys a token sees; 0 = all
  nn::Bias attention_bias = nn::Bias::none;  // of q, k and v
  nn::Bias output_bias = nn::Bias::none;
  nn::Bias mlp_bias = nn::Bias::none;
  // Granite's multipliers; attention_scale is of the scores, 0 = 1 / sqrt(head_dim).
  float embedding_scale = 1, branch_scale = 1, attention_scale = 0, logit_scale = 1;
  std::vector<bool> rotated;  // by layer; false: without rope
  bool plain_rows = false;    // see nn::AttentionSpec
  bool turned_norm = false;   // heads of q and k have norms behind the rotation
  std::string_view ffn_norm = "ffn_norm";
};

LlamaConfig read_llama_config(const ConfigReader& reader);

}  // namespace rbee::models
