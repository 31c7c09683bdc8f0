#pragma once
// An engine's options: what is left open, and how they become its scheduler's.

#include "backends/api/device.h"
#include "rbee/engine/text/llm_engine.h"
#include "rbee/engine/text/scheduler.h"

namespace rbee::engine {

// With values in the place of zeros. draft: null without one. Throws invalid_argument for options
// out of range.
LlmOptions resolve(const TextModel& text, const TextModel* draft, LlmOptions options);

// vocab: columns of the logits.
SchedulerOptions scheduling(const LlmOptions& options, const Device& device, int64_t vocab);

}  // namespace rbee::engine
