#pragma once

#include "rbee/models/common_config.h"

namespace rbee::models {

// Llama 2, 3 and 3.1 (Touvron et al. 2023, Grattafiori et al. 2024), SmolLM2, Mistral 7B (Jiang et
// al. 2023).
struct LlamaConfig : ModelConfig {
  GateOp activation = GateOp::silu;
  nn::RopeOptions rope;
  int64_t window = 0;  // Mistral: keys a token sees; 0 = all
  nn::Bias attention_bias = nn::Bias::none;
  nn::Bias mlp_bias = nn::Bias::none;
};

LlamaConfig read_llama_config(const ConfigReader& reader);

}  // namespace rbee::models
