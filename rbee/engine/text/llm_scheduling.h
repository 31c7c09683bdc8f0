#pragma once
// Fills in an engine's options and makes those of its parts from them.

#include "backends/api/device.h"
#include "rbee/engine/text/llm_engine.h"
#include "rbee/engine/text/scheduler.h"
#include "rbee/engine/text/step/stepper.h"

namespace rbee::engine {

// Replaces zeros by values. draft: null if there is none. Throws invalid_argument for options out
// of range.
LlmOptions resolve(const TextModel& text, const TextModel* draft, LlmOptions options);

StepperOptions stepping(const LlmOptions& options);
SchedulerOptions scheduling(const LlmOptions& options, const TextModel& text);

}  // namespace rbee::engine
