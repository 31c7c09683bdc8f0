#pragma once

#include "rbee/models/common_config.h"

namespace rbee::models {

// Gemma 2 (Gemma Team 2024): soft-capped scores and logits, every other layer with a window.
struct Gemma2Config : ModelConfig {
  GateOp activation = GateOp::gelu;
  nn::RopeOptions rope;
  float attention_scale = 0;
  float attention_softcap = 0;   // 0 = off
  float logit_softcap = 0;       // 0 = off
  std::vector<int64_t> windows;  // keys a token sees, by layer; 0 = all
  float norm_weight_offset = 0;  // Hugging Face stores weight - 1
};

Gemma2Config read_gemma2_config(const ConfigReader& reader);

}  // namespace rbee::models
