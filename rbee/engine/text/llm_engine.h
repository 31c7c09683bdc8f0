#pragma once
// The engine of a language model: one thread, one step after another, each shared by the requests
// that run (continuous batching, see scheduler.h).

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "rbee/engine/api/text.h"
#include "rbee/engine/text/text_model.h"

namespace rbee::engine {

struct LlmOptions {
  int32_t max_running = 32;  // requests that share a step
  // Requests queued beyond those. More are refused, but of clients that have less than their share
  // of these places; of all at most as many again are taken.
  int32_t max_waiting = 256;
  bool priorities = false;  // requests may have priorities below 0
  // Tokens evaluated in one step at most, a quarter of them (of a GPU half) prompts' where
  // others generate.
  // 0 = 512 where the host computes, else 2048; at least max_running.
  int64_t step_tokens = 0;
  // Tokens that the KV cache holds, of running requests and of texts that may come again; at least
  // the model's context. 0 = a context for each of max_running, or what an eighth of the free
  // memory holds (of a device with its own: half), but one context at least.
  int64_t cache_tokens = 0;
  int64_t block_size = 32;      // tokens in a block of the KV cache
  std::vector<LoraInfo> loras;  // adapters that requests can take
  bool speculative = false;     // draft tokens ahead, where a request does not say
  int32_t draft_tokens = 8;     // drafted at most, 1 to 64
  int32_t max_pictures = 16;    // of a request, 1 to 1024
  // Of pictures that nobody asks about any more: what the tower made of them, and their pixels.
  int64_t picture_cache_bytes = int64_t{256} << 20;
  // Grammars that answers followed, and their masks, kept for those that follow them again until
  // nothing has run for so long.
  int64_t grammar_cache_bytes = int64_t{256} << 20;
  std::chrono::milliseconds grammar_rest{60'000};
  // A draft model stops drafting where none of its tokens has this probability, 0 to 1.
  float draft_min_p = 0;
  std::optional<DType> kv_dtype;  // a cache type; absent: see StepperOptions
};

// Takes the model over and starts the engine's thread. draft: drafts tokens ahead; without it the
// text does. Throws invalid_argument for options out of range and as check_draft() does, and
// out_of_memory when the KV cache does not fit.
std::unique_ptr<TextEngine> make_llm_engine(TextModel model, const LlmOptions& options,
                                            std::optional<TextModel> draft = std::nullopt);

}  // namespace rbee::engine
