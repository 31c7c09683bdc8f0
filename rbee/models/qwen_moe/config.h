#pragma once

#include "rbee/models/common_config.h"

namespace rbee::models {

// Qwen1.5-MoE and Qwen2-MoE (Yang et al. 2024, "Qwen2 Technical Report", section 2.2.2): biases on
// q, k and v, and a gated shared expert. Qwen3-MoE (Yang et al. 2025): norms on the heads of q and
// k, and no shared expert.
struct QwenMoeConfig : ModelConfig {
  GateOp activation = GateOp::silu;
  nn::RopeOptions rope;
  nn::Bias qkv_bias = nn::Bias::none;
  nn::Bias output_bias = nn::Bias::none;
  bool qk_norm = false;
  ExpertCounts experts;
  int64_t expert_ffn_dim = 0;
  int64_t shared_ffn_dim = 0;  // 0 = no shared expert
  bool normalise = false;      // the chosen experts' weights add up to 1
  std::vector<bool> sparse;    // by layer: experts, not one MLP
};

QwenMoeConfig read_qwen2_moe_config(const ConfigReader& reader);
QwenMoeConfig read_qwen3_moe_config(const ConfigReader& reader);

}  // namespace rbee::models
