#pragma once
// Fills in an engine's options and makes the scheduler's options from them.

#include "backends/api/device.h"
#include "rbee/engine/text/llm_engine.h"
#include "rbee/engine/text/scheduler.h"

namespace rbee::engine {

// Replaces zeros by values. draft: null if there is none. Throws invalid_argument for options out
// of range.
LlmOptions resolve(const TextModel& text, const TextModel* draft, LlmOptions options);

// vocab: columns of the logits.
SchedulerOptions scheduling(const LlmOptions& options, const Device& device, int64_t vocab);

}  // namespace rbee::engine
