#pragma once

#include "rbee/models/common_config.h"
#include "rbee/nn/attention.h"

namespace rbee::models {

// OLMo 2 (OLMo Team 2025): norms after attention and MLP instead of before them, and norms over the
// whole rows of q and k. OLMo 3 (2025) adds windows, whose layers turn by plain frequencies.
// EXAONE 4 (LG AI Research 2025) has norms on the heads, and beside windows no rotation elsewhere.
struct Olmo2Config : ModelConfig {
  GateOp activation = GateOp::silu;
  nn::RopeOptions rope;        // of layers that see all
  nn::RopeOptions local_rope;  // of layers with a window
  nn::Bias attention_bias = nn::Bias::none;
  nn::QkNorm qk_norm = nn::QkNorm::row;
  std::vector<int64_t> windows;  // by layer: keys a token sees; 0 = all
  std::vector<bool> rotated;     // by layer; false: without rope
};

Olmo2Config read_olmo2_config(const ConfigReader& reader);

}  // namespace rbee::models
