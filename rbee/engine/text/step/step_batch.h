#pragma once
// What a step evaluates, and what its logits are used for.

#include <memory>
#include <span>
#include <vector>

#include "rbee/engine/text/llm_job.h"
#include "rbee/engine/text/sampling/token_choice.h"
#include "rbee/engine/text/scheduler.h"
#include "rbee/engine/text/step/stepper.h"

namespace rbee::engine {

struct StepBatch {
  // The logit rows of one request; they are contiguous.
  struct Rows {
    std::shared_ptr<LlmJob> job;
    int64_t first = 0;    // index into `rows`
    int64_t scored = 0;   // after prompt tokens, to score the next one
    int64_t sampled = 0;  // then one for the new token, and one after each draft token
  };

  std::vector<Stepper::Work> work;
  std::vector<int32_t> rows;  // indices of the work's tokens whose logits are wanted
  std::vector<Rows> asked;    // in the rows' order; also requests that want no new token
  int64_t tokens = 0;
  int64_t generated = 0;  // of these, generated tokens
};

// The parts' tickets must be LlmJobs.
StepBatch make_step_batch(std::span<const Scheduler::Part> parts);
// What to find in the rows.
RowsWanted gather(std::span<const StepBatch::Rows> asked, int64_t vocab, bool draws);
// Scores the request's prompt tokens and gives it the figures.
void score_prompt(const StepBatch::Rows& rows, const StepLogits& logits);
// The next token: a forced one, or the sampler's choice.
Chosen next_token(LlmJob& job, const StepLogits& logits, const LogitRow& row);
// Whether all its tokens are cached.
inline bool is_evaluated(const Sequence& sequence) {
  return sequence.cached == sequence.length();
}

}  // namespace rbee::engine
