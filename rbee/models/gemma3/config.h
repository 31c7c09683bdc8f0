#pragma once

#include "rbee/models/common_config.h"

namespace rbee::models {

// Gemma 3, text (Gemma Team 2025): five layers with a window and a small rope base for each
// full-attention layer, and norms on the heads of q and k.
struct Gemma3Config : ModelConfig {
  GateOp activation = GateOp::gelu;
  nn::RopeOptions global_rope;
  nn::RopeOptions local_rope;
  float attention_scale = 0;
  float logit_softcap = 0;       // 0 = off
  std::vector<int64_t> windows;  // keys a token sees, by layer; 0 = all, and the global rope
  float norm_weight_offset = 0;  // Hugging Face stores weight - 1
};

Gemma3Config read_gemma3_config(const ConfigReader& reader);

}  // namespace rbee::models
