#pragma once
// What a step gave one request.

#include <cstddef>
#include <optional>
#include <span>

#include "rbee/core/error.h"
#include "rbee/engine/api/text.h"
#include "rbee/engine/text/form/mask_turns.h"
#include "rbee/engine/text/step/step_batch.h"

namespace rbee::engine {

struct StepOutcome {
  size_t tokens = 0;                 // new ones
  size_t drafted = 0;                // draft tokens that the step checked
  std::optional<StopReason> reason;  // the request ends with it
  std::optional<Error> error;        // the request fails alone; with Code::device, all do
};

// Scores the request's prompt and takes its new tokens; those after a draft token count while it is
// the choice. Masks of tokens taken here use the time that `masks` has left. Throws nothing.
StepOutcome take_tokens(const StepBatch::Rows& rows, const StepLogits& logits, MaskTurns& masks);

// Adds a step of these outcomes to the counts of tokens and drafts.
void count_tokens(std::span<const StepOutcome> outcomes, EngineStats& stats);

}  // namespace rbee::engine
