#pragma once

#include "rbee/models/common_config.h"

namespace rbee::models {

// Gemma (Gemma Team 2024, "Gemma: Open Models Based on Gemini Research and Technology").
struct GemmaConfig : ModelConfig {
  GateOp activation = GateOp::gelu;
  nn::RopeOptions rope;
  float norm_weight_offset = 0;  // Hugging Face stores weight - 1
};

GemmaConfig read_gemma_config(const ConfigReader& reader);

}  // namespace rbee::models
