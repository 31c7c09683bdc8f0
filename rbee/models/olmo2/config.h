#pragma once

#include "rbee/models/common_config.h"

namespace rbee::models {

// OLMo 2 (OLMo Team 2025): norms after attention and MLP instead of before them, and norms over the
// whole rows of q and k.
struct Olmo2Config : ModelConfig {
  GateOp activation = GateOp::silu;
  nn::RopeOptions rope;
  nn::Bias attention_bias = nn::Bias::none;
};

Olmo2Config read_olmo2_config(const ConfigReader& reader);

}  // namespace rbee::models
