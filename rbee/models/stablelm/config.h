#pragma once

#include "rbee/models/common_config.h"

namespace rbee::models {

// StableLM 3B-4E1T, StableLM 2 1.6B and 12B (Bellagente et al. 2024): layer norms, a quarter of
// each head is rotated; 12B computes attention and MLP from one norm, with norms on heads of q and
// k. Command R7B and Command A (Cohere 2024, 2025) compute both from one norm too, turn whole heads
// in layers with a window, and none in others.
struct StableLmConfig : ModelConfig {
  GateOp activation = GateOp::silu;
  nn::RopeOptions rope;
  nn::Bias qkv_bias = nn::Bias::none;
  nn::Bias output_bias = nn::Bias::none;
  bool qk_norm = false;
  bool parallel = false;  // attention and MLP read the same norm
  float logit_scale = 1;
  std::vector<int64_t> windows;  // by layer: keys a token sees; 0 = all
  std::vector<bool> rotated;     // by layer; false: without rope
};

StableLmConfig read_stablelm_config(const ConfigReader& reader);

}  // namespace rbee::models
