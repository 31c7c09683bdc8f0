#pragma once
// The engine of a model for embeddings: one thread; texts of all requests that wait share a pass,
// clients giving theirs in turn.

#include <memory>

#include "rbee/engine/embedding/source.h"

namespace rbee::engine {

struct EmbeddingOptions {
  // Of a pass at most, but for a lone longer text. A CPU's pass has what it evaluates in 50 ms, but
  // 128 tokens if these are fewer.
  int64_t pass_tokens = 4096;
  int32_t max_waiting = 256;  // requests that are not done; more are refused
};

// Takes the source over, embeds something, and starts the engine's thread. Throws invalid_argument
// for options out of range, and what a device throws that cannot run the model.
std::unique_ptr<EmbeddingEngine> make_embedding_engine(EmbeddingSource source,
                                                       const EmbeddingOptions& options);

}  // namespace rbee::engine
