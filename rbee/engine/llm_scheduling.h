#pragma once
// What an engine's options mean for a model and its device, and for the scheduler.

#include <algorithm>

#include "backends/api/device.h"
#include "rbee/engine/llm_engine.h"
#include "rbee/engine/scheduler.h"

namespace rbee::engine {

// Of a step's tokens, those of prompts where others generate: one in this many. A GPU takes few
// tokens nearly as long as many.
inline constexpr int64_t kBesideShare = 4;
inline constexpr int64_t kBesideShareOfGpu = 2;

// Rows of a tile that GPUs multiply by.
inline constexpr int64_t kRowTileOfGpu = 128;

// The options with their defaults put in. draft: null where there is none. Throws invalid_argument
// for what is out of range.
LlmOptions resolve(const TextModel& text, const TextModel* draft, LlmOptions options);

inline SchedulerOptions scheduling(const LlmOptions& options, const Device& device) {
  const bool host = device.host_accessible();
  const int64_t share = host ? kBesideShare : kBesideShareOfGpu;
  return {.max_running = options.max_running,
          .step_tokens = options.step_tokens,
          .beside_tokens = std::max<int64_t>(options.step_tokens / share, 1),
          .row_tile = host ? 1 : kRowTileOfGpu};
}

}  // namespace rbee::engine
