#pragma once
// The engine of an embedding model: one thread. Texts of all waiting requests share a pass, and
// clients take turns to add theirs.

#include <memory>

#include "rbee/engine/embedding/source.h"

namespace rbee::engine {

struct EmbeddingOptions {
  // Most tokens of a pass, unless it is one longer text. On a CPU a pass has only what it can
  // evaluate in 50 ms, but up to 128 tokens in any case.
  int64_t pass_tokens = 4096;
  int32_t max_waiting = 256;  // requests that are not done; more are refused
};

// Takes the source over, embeds something, and starts the engine's thread. Throws invalid_argument
// for options out of range, and what a device throws if it cannot run the model.
std::unique_ptr<EmbeddingEngine> make_embedding_engine(EmbeddingSource source,
                                                       const EmbeddingOptions& options);

}  // namespace rbee::engine
