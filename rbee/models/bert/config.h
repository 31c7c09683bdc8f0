#pragma once

#include "rbee/models/common_config.h"

namespace rbee::models {

// BERT (Devlin et al. 2019), RoBERTa (Liu et al. 2019) and XLM-RoBERTa (Conneau et al. 2020).
struct BertConfig : ModelConfig {
  UnaryOp activation = UnaryOp::gelu_erf;
  int64_t first_position = 0;  // row of the position table for a text's first token
  int64_t segments = 0;        // rows of the segment table
  bool roberta = false;        // two separators between the texts of a pair
};

BertConfig read_bert_config(const ConfigReader& reader);

}  // namespace rbee::models
