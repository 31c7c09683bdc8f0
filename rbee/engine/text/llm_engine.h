#pragma once
// The engine of a language model: one thread runs one step after another, and the running requests
// share each step (continuous batching, see scheduler.h).

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "rbee/engine/api/text.h"
#include "rbee/engine/text/text_model.h"

namespace rbee::engine {

struct LlmOptions {
  int32_t max_running = 32;  // most requests that share a step
  // Requests that may wait beside those. When the places are full, only clients below their fair
  // share may still queue, up to twice this number.
  int32_t max_waiting = 256;
  bool priorities = false;  // allow priorities below 0
  // Most tokens of one step. While requests generate, prompts get at most a quarter of them (half
  // on a GPU). 0 = 512 where the host computes and its weights do not visit the GPU, else 2048; at
  // least max_running.
  int64_t step_tokens = 0;
  // Most seconds of a step where the host computes, since a newcomer waits for its end. 0: no
  // bound; then no step's contents depend on time.
  double step_seconds = 0.04;
  // Capacity of the KV cache in tokens, for running requests and for kept texts; at least one
  // context. 0 = one context for each of max_running; or, if less, what fits into an eighth of the
  // host's free memory and half of the GPU's, whichever of them hold the cache.
  int64_t cache_tokens = 0;
  int64_t block_size = 32;      // tokens in a block of the KV cache
  std::vector<LoraInfo> loras;  // adapters that requests can name
  bool speculative = false;     // draft tokens, unless a request says otherwise
  int32_t draft_tokens = 8;     // most draft tokens of a step, 1 to 64
  int32_t max_pictures = 16;    // most pictures of a request, 1 to 1024
  // Cache for pictures of past requests: their pixels and the vision tower's output.
  int64_t picture_cache_bytes = int64_t{256} << 20;
  // Cache for compiled grammars and their masks. The engine empties it after grammar_rest without
  // work.
  int64_t grammar_cache_bytes = int64_t{256} << 20;
  std::chrono::milliseconds grammar_rest{60'000};
  // The draft model stops drafting when no token has this probability, 0 to 1.
  float draft_min_p = 0;
  std::optional<DType> kv_dtype;  // a cache type; absent: see StepperOptions
  bool kv_offload = true;         // false: a GPU's cache is in host memory
  // Host memory for blocks that the KV cache gives up, of all ranks. 0: none.
  int64_t host_cache_bytes = 0;
  // Batches of KV events that are kept for readers (TextEngine::kv_events()). 0: there are none.
  int64_t kv_event_batches = 0;
  // See BlockEvents.
  std::string kv_event_seed = "0";
};

// Takes the model over and starts the engine's thread. draft: the draft model; without one, draft
// tokens come from the text itself. Throws invalid_argument for options out of range and as
// check_draft() does, and out_of_memory if the KV cache does not fit.
std::unique_ptr<TextEngine> make_llm_engine(TextModel model, const LlmOptions& options,
                                            std::optional<TextModel> draft = std::nullopt);

}  // namespace rbee::engine
