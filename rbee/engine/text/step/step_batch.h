#pragma once
// What a step evaluates, and what its logits are for.

#include <memory>
#include <span>
#include <vector>

#include "rbee/engine/text/llm_job.h"
#include "rbee/engine/text/sampling/token_choice.h"
#include "rbee/engine/text/scheduler.h"
#include "rbee/engine/text/step/stepper.h"

namespace rbee::engine {

struct StepBatch {
  // Rows that a request wants of the logits, one behind another.
  struct Rows {
    std::shared_ptr<LlmJob> job;
    int64_t first = 0;    // of `rows`
    int64_t scored = 0;   // behind tokens of its prompt, for the next one's figures
    int64_t sampled = 0;  // then one for the token to come, and one behind each draft token
  };

  std::vector<Stepper::Work> work;
  std::vector<int32_t> rows;  // of the work's tokens, whose logits are wanted
  std::vector<Rows> asked;    // in the rows' order; also of requests that want no token to come
  int64_t tokens = 0;
  int64_t generated = 0;  // of these, tokens of generation
};

// parts: their tickets are LlmJobs.
StepBatch make_step_batch(std::span<const Scheduler::Part> parts);
// What to look for in the rows.
RowsWanted gather(std::span<const StepBatch::Rows> asked, int64_t vocab, bool draws);
// Gives requests the figures of their prompts' tokens.
void score_prompts(std::span<const StepBatch::Rows> asked, const StepLogits& logits);
// The token that follows: what the request has to say, or what its sampler chooses.
Chosen next_token(LlmJob& job, const StepLogits& logits, const LogitRow& row);
// All its tokens have been.
inline bool is_evaluated(const Sequence& sequence) {
  return sequence.cached == sequence.length();
}

}  // namespace rbee::engine
