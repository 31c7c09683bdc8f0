#pragma once

#include "rbee/models/llama/config.h"

namespace rbee::models {

// Mixtral 8x7B and 8x22B (Jiang et al. 2024). GGUF files call them llama, with experts.
struct MixtralConfig : LlamaConfig {
  ExpertCounts experts;
};

MixtralConfig read_mixtral_config(const ConfigReader& reader);

}  // namespace rbee::models
