#pragma once

#include "rbee/models/common_config.h"

namespace rbee::models {

// Phi-3 and Phi-3.5 mini and medium (Abdin et al. 2024): fused projections, LongRoPE, a window.
struct Phi3Config : ModelConfig {
  GateOp activation = GateOp::silu;
  nn::RopeOptions rope;
  int64_t window = 0;  // keys a token sees; 0 = all
};

Phi3Config read_phi3_config(const ConfigReader& reader);

}  // namespace rbee::models
