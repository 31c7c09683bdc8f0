#pragma once
// The next token of a request from the logits of a step.

#include <cstdint>
#include <optional>
#include <span>

#include "rbee/engine/llm_job.h"
#include "rbee/engine/stepper.h"

namespace rbee::engine {

// What there is of the last step's logits.
struct StepLogits {
  Stepper& stepper;  // has the whole rows
  const LeaderRows& found;
  const LeadersWanted& wanted;
};

// A row of them and the text before the token that it is for.
struct LogitRow {
  int64_t index;
  std::span<const int32_t> history;
};

struct Chosen {
  int32_t id;
  std::optional<RowLogprobs> scored;  // where the request asks for it
};

// How many leaders log probabilities take, of a row whose leaders are looked for anyway.
int64_t scored_leaders(const LlmJob& job, const Sampler::Wanted& wanted);
// The whole row is read where the leaders do not decide. Throws internal for what a failing device
// gives.
Chosen choose_token(LlmJob& job, const StepLogits& logits, const LogitRow& row);

}  // namespace rbee::engine
