#pragma once

#include "rbee/models/common_config.h"

namespace rbee::models {

// gpt-oss-20b and 120b (OpenAI 2025, "gpt-oss-120b & gpt-oss-20b Model Card"): experts in MXFP4,
// biases, attention sinks, every other layer with a window.
struct GptOssConfig : ModelConfig {
  nn::RopeOptions rope;
  std::vector<int64_t> windows;  // keys a token sees, by layer; 0 = all
  ExpertCounts experts;
  int64_t expert_ffn_dim = 0;
  float swiglu_limit = 0;
};

GptOssConfig read_gpt_oss_config(const ConfigReader& reader);

}  // namespace rbee::models
