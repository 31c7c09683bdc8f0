#pragma once
// Embedding models with a decoder's architecture, causal or bidirectional.

#include <memory>
#include <optional>

#include "rbee/models/embedding_model.h"
#include "rbee/models/rank_head.h"

namespace rbee::models {

struct DecoderEmbeddingSpec {
  std::unique_ptr<LanguageModel> model;
  Device* device = nullptr;
  int64_t max_tokens = 0;  // of a text
  std::optional<RankHead> head = std::nullopt;
  Pooling head_pooling = Pooling::last;  // of the states that the head sees
};

// Each text is a pass of its own. Its vector comes from the states after the final norm.
std::unique_ptr<EmbeddingModel> make_decoder_embedding(DecoderEmbeddingSpec spec);

}  // namespace rbee::models
