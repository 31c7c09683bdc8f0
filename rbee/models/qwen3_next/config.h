#pragma once

#include <vector>

#include "rbee/models/common_config.h"
#include "rbee/nn/gated_delta_net.h"

namespace rbee::models {

struct Qwen3NextConfig : ModelConfig {
  nn::RopeOptions rope;
  nn::GatedDeltaNetSpec delta_net;
  std::vector<bool> recurrent;  // by layer: a delta net in place of attention
  nn::Bias attention_bias = nn::Bias::none;
  float norm_weight_offset = 0;  // of all norms but the delta net's
  ExpertCounts experts;          // none: the model is dense
  int64_t expert_ffn_dim = 0;
  int64_t shared_ffn_dim = 0;
  bool normalise = true;  // the weights of the chosen experts
};

// Of qwen3_next, qwen3_5 and qwen3_5_moe. Throws as read_common() does.
Qwen3NextConfig read_qwen3_next_config(const ConfigReader& reader);

}  // namespace rbee::models
