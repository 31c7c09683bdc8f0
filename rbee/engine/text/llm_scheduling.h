#pragma once
// Fills in an engine's options and makes those of its parts from them.

#include <memory>

#include "backends/api/device.h"
#include "rbee/engine/api/kv_events.h"
#include "rbee/engine/text/llm_engine.h"
#include "rbee/engine/text/scheduler.h"
#include "rbee/engine/text/step/stepper.h"

namespace rbee::engine {

// Replaces zeros by values. draft: null if there is none. Throws invalid_argument for options out
// of range.
LlmOptions resolve(const TextModel& text, const TextModel* draft, LlmOptions options);

StepperOptions stepping(const LlmOptions& options, const TextModel& text);
// Fills in the caches' bytes, of all ranks and of each, once.
void tell_cache_bytes(const Stepper& stepper, TextModel& text);
// Bytes of the host cache of all ranks; 0 without one.
int64_t host_cache_bytes(const LlmOptions& options, const TextModel& text);
// Null without events.
std::shared_ptr<KvEventLog> make_event_log(const LlmOptions& options);
// Fills in the figures of the cache.
void note_blocks(const KvBlockPool& pool, EngineStats& stats);
// Fills in the figures of the model's group, if there is one.
void note_group(const TextModel& text, EngineStats& stats);
SchedulerOptions scheduling(const LlmOptions& options, const TextModel& text);

}  // namespace rbee::engine
