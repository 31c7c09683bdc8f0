#include "rbee/engine/text/step/step_batch.h"

#include <algorithm>
#include <vector>

namespace rbee::engine {

StepBatch make_step_batch(std::span<const Scheduler::Part> parts) {
  StepBatch out;
  for (const Scheduler::Part& part : parts) {
    auto job = std::static_pointer_cast<LlmJob>(part.ticket);  // the engine makes no others
    const Sequence& sequence = job->sequence;
    const int64_t end = sequence.cached + part.count;
    // The batch's row for the sequence's first token.
    const int64_t origin = out.tokens - sequence.cached;
    out.work.push_back({&job->sequence, part.count});
    out.tokens += part.count;
    if (part.count == 1 + job->drafted()) out.generated += part.count;
    StepBatch::Rows rows{.job = job, .first = std::ssize(out.rows)};
    const auto want = [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) out.rows.push_back(static_cast<int32_t>(origin + i));
      return std::max<int64_t>(to - from, 0);
    };
    rows.scored =
        want(std::max(sequence.scored, sequence.cached), std::min(sequence.score_end, end));
    const bool whole = end == sequence.length();
    if (whole && job->request().max_tokens > 0) rows.sampled = want(end - 1 - job->drafted(), end);
    if (whole || rows.scored > 0) out.asked.push_back(std::move(rows));
  }
  return out;
}

RowsWanted gather(std::span<const StepBatch::Rows> asked, int64_t vocab, bool draws) {
  RowsWanted out(vocab, draws);
  for (const StepBatch::Rows& rows : asked) {
    const LlmJob& job = *rows.job;
    if (rows.scored > 0) out.add_scored(*job.request().prompt_logprobs, rows.scored);
    if (rows.sampled == 0) continue;
    const TextRequest& request = job.request();
    out.add(job.sampler(), request.logprob_ids.empty() ? request.logprobs : std::nullopt,
            rows.sampled);
  }
  return out;
}

void score_prompt(const StepBatch::Rows& rows, const StepLogits& logits) {
  LlmJob& job = *rows.job;
  for (int64_t row = rows.first; row < rows.first + rows.scored; ++row) {
    job.score(score_token(job.next_scored(), *job.request().prompt_logprobs, logits, row));
  }
}

namespace {

Chosen next_token(LlmJob& job, std::optional<int32_t> logprobs, const StepLogits& logits,
                  const LogitRow& row) {
  if (const auto forced = job.forced()) return force_token(*forced, logprobs, logits, row.index);
  return choose_token(job.sampler(), logprobs, logits, row);
}

}  // namespace

Chosen next_token(LlmJob& job, const StepLogits& logits, const LogitRow& row) {
  const TextRequest& request = job.request();
  if (request.logprob_ids.empty()) return next_token(job, request.logprobs, logits, row);
  const std::span<const float> all = logits.stepper.logit_row(row.index);
  // Samplers change these.
  const std::vector<float> unchanged(all.begin(), all.begin() + logits.wanted.vocab);
  Chosen out = next_token(job, std::nullopt, logits, row);
  out.scored = logprobs_of(unchanged, out.id, request.logprob_ids);
  return out;
}

}  // namespace rbee::engine
