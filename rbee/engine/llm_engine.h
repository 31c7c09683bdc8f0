#pragma once
// The engine of a language model: one thread, a queue in order of arrival, one step after another.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "rbee/engine/engine.h"
#include "rbee/engine/text_model.h"

namespace rbee::engine {

struct LlmOptions {
  int32_t max_running = 1;        // sequences that share a step
  int32_t max_waiting = 256;      // requests queued beyond those; more are refused
  int32_t chunk = 512;            // prompt tokens evaluated in one step
  int64_t block_size = 32;        // tokens in a block of the KV cache
  std::optional<DType> kv_dtype;  // a cache type; absent: see StepperOptions
};

// Takes the model over and starts the engine's thread. Throws out_of_memory when the KV cache of
// the model's context does not fit.
std::unique_ptr<Engine> make_llm_engine(TextModel model, const LlmOptions& options);

}  // namespace rbee::engine
