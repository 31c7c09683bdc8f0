#pragma once

#include "rbee/models/common_config.h"

namespace rbee::models {

// OLMo 2 (OLMo Team 2025): norms behind attention and MLP in place of before them, and over the
// whole rows of q and k.
struct Olmo2Config : ModelConfig {
  GateOp activation = GateOp::silu;
  nn::RopeOptions rope;
  nn::Bias attention_bias = nn::Bias::none;
};

Olmo2Config read_olmo2_config(const ConfigReader& reader);

}  // namespace rbee::models
