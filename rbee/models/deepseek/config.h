#pragma once

#include "rbee/models/common_config.h"
#include "rbee/nn/latent_attention.h"
#include "rbee/nn/moe.h"

namespace rbee::models {

// DeepSeek-V2 and V2-Lite (DeepSeek-AI 2024, "DeepSeek-V2"), V3 and R1 ("DeepSeek-V3 Technical
// Report"): latent attention, many small experts and a shared one.
struct DeepseekConfig : ModelConfig {
  nn::RopeOptions rope;
  nn::LatentAttentionSpec attention;
  GateOp activation = GateOp::silu;
  int64_t dense_layers = 0;  // the first ones, with an MLP
  nn::MoeSpec moe;           // of the others
};

DeepseekConfig read_deepseek_config(const ConfigReader& reader);

}  // namespace rbee::models
