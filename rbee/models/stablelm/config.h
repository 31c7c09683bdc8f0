#pragma once

#include "rbee/models/common_config.h"

namespace rbee::models {

// StableLM 3B-4E1T, StableLM 2 1.6B and 12B (Bellagente et al. 2024): layer norms, a quarter of
// each head is rotated; 12B computes attention and MLP from one norm, with norms on heads of q and
// k.
struct StableLmConfig : ModelConfig {
  GateOp activation = GateOp::silu;
  nn::RopeOptions rope;
  nn::Bias qkv_bias = nn::Bias::none;
  bool qk_norm = false;
  bool parallel = false;  // attention and MLP read the same norm
};

StableLmConfig read_stablelm_config(const ConfigReader& reader);

}  // namespace rbee::models
