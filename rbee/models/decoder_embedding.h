#pragma once
// Models of the decoders' build for embeddings, whether their tokens see what comes after them or
// not.

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

// A text is a pass of its own: its vector comes from the states behind the final norm.
std::unique_ptr<EmbeddingModel> make_decoder_embedding(DecoderEmbeddingSpec spec);

}  // namespace rbee::models
