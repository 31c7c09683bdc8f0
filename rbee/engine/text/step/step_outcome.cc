#include "rbee/engine/text/step/step_outcome.h"

#include <vector>

#include "rbee/engine/text/guarded.h"

namespace rbee::engine {

StepOutcome take_tokens(const StepBatch::Rows& rows, const StepLogits& logits, MaskTurns& masks) {
  LlmJob& job = *rows.job;
  StepOutcome out;
  const auto failed = [&](const Error& error) { out.error = error; };
  guarded(failed, [&] { score_prompt(rows, logits); });
  if (out.error) return out;
  if (rows.sampled == 0) {  // a part of a prompt, or all of it for a request that wants no tokens
    if (is_evaluated(job.sequence)) out.reason = StopReason::max_tokens;
    return out;
  }
  const std::vector<DraftToken> drafts = job.drop_drafts();
  out.drafted = drafts.size();
  guarded(failed, [&] {
    for (bool goes_on = true; goes_on;) {
      const DraftToken* draft = out.tokens < drafts.size() ? &drafts[out.tokens] : nullptr;
      const LogitRow row{.index = rows.first + rows.scored + static_cast<int64_t>(out.tokens),
                         .history = job.sequence.tokens,
                         .draft = draft};
      const Chosen chosen = next_token(job, logits, row);
      ++out.tokens;
      out.reason = job.take(chosen.id, chosen.scored ? &*chosen.scored : nullptr);
      if (!out.reason) masks.slice([&](int64_t& work) { job.find_mask(work); });
      goes_on = !out.reason && !job.held && draft != nullptr && draft->id == chosen.id;
    }
  });
  if (!out.error) {
    job.settle_drafts(std::ssize(drafts), static_cast<int64_t>(out.tokens) - 1);
  }
  return out;
}

void count_tokens(std::span<const StepOutcome> outcomes, EngineStats& stats) {
  for (const StepOutcome& outcome : outcomes) {
    stats.generated_tokens += outcome.tokens;
    if (outcome.drafted == 0 || outcome.error) continue;
    ++stats.drafts;
    stats.draft_tokens += outcome.drafted;
    stats.accepted_tokens += outcome.tokens - 1;
  }
}

}  // namespace rbee::engine
