#pragma once

#include "rbee/models/common_config.h"

namespace rbee::models {

// Nomic's BERT (Nussbaum et al. 2024, "Nomic Embed"): rotary positions, gated MLPs, no biases in
// the layers but those of the norms.
struct NomicBertConfig : ModelConfig {
  GateOp activation = GateOp::silu;
  nn::RopeOptions rope;
  int64_t segments = 0;  // rows of the segment table
};

NomicBertConfig read_nomic_bert_config(const ConfigReader& reader);

}  // namespace rbee::models
