#pragma once

#include "rbee/models/common_config.h"
#include "rbee/models/embedding_model.h"

namespace rbee::models {

// ModernBERT (Warner et al. 2024): every third layer has full attention, the others a window on
// both sides and their own rotary table; gated MLPs, layer norms before the branches.
struct ModernBertConfig : ModelConfig {
  GateOp activation = GateOp::gelu_erf;
  nn::RopeOptions global_rope;
  nn::RopeOptions local_rope;
  std::vector<int64_t> windows;                 // see layer_windows(); 0 = all, and the global rope
  UnaryOp head_activation = UnaryOp::gelu_erf;  // of a ranker's head
  Pooling head_pooling = Pooling::cls;
};

ModernBertConfig read_modern_bert_config(const ConfigReader& reader);

}  // namespace rbee::models
