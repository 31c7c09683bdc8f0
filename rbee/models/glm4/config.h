#pragma once

#include "rbee/models/common_config.h"

namespace rbee::models {

// GLM-4 of 9B and 32B (GLM Team 2024, files from 2025-04 on): norms before and after the branches,
// half of each head is rotated, gate and up in one matrix.
struct Glm4Config : ModelConfig {
  GateOp activation = GateOp::silu;
  nn::RopeOptions rope;
  nn::Bias qkv_bias = nn::Bias::none;
};

Glm4Config read_glm4_config(const ConfigReader& reader);

}  // namespace rbee::models
