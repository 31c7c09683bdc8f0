#pragma once

#include "rbee/models/common_config.h"

namespace rbee::models {

// Qwen2 and Qwen2.5 (Yang et al. 2024): biases on q, k and v; the upper layers may use a window.
struct Qwen2Config : ModelConfig {
  GateOp activation = GateOp::silu;
  nn::RopeOptions rope;
  std::vector<int64_t> windows;  // keys a token sees, by layer; 0 = all
};

Qwen2Config read_qwen2_config(const ConfigReader& reader);

}  // namespace rbee::models
