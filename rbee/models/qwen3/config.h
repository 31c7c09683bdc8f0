#pragma once

#include "rbee/models/common_config.h"

namespace rbee::models {

// Qwen3, dense (Yang et al. 2025): norms on the heads of q and k instead of Qwen2's biases.
struct Qwen3Config : ModelConfig {
  GateOp activation = GateOp::silu;
  nn::RopeOptions rope;
  std::vector<int64_t> windows;  // keys a token sees, by layer; 0 = all
  nn::Bias attention_bias = nn::Bias::none;
};

Qwen3Config read_qwen3_config(const ConfigReader& reader);

}  // namespace rbee::models
