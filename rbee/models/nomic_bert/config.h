#pragma once

#include "rbee/models/common_config.h"
#include "rbee/nn/linear.h"

namespace rbee::models {

// Nomic's BERT (Nussbaum et al. 2024, "Nomic Embed"): rotary positions; MLPs with a gate, or
// without one in the second version, which has experts.
struct NomicBertConfig : ModelConfig {
  bool gated = true;
  GateOp activation = GateOp::silu;              // of gated MLPs, which have no biases
  UnaryOp plain_activation = UnaryOp::gelu_erf;  // of others
  nn::Bias attention_bias = nn::Bias::none;      // of q, k, v and the output
  nn::Bias up_bias = nn::Bias::none, down_bias = nn::Bias::none;
  int64_t expert_period = 0;                // layers 1, 1 + period, ... have experts; 0: none
  int64_t experts = 0, chosen_experts = 0;  // of such a layer, and of a token
  nn::RopeOptions rope;
  int64_t segments = 0;  // rows of the segment table
};

NomicBertConfig read_nomic_bert_config(const ConfigReader& reader);

}  // namespace rbee::models
