#pragma once
// Gives sequences that generate draft tokens, for the model to confirm in its next step.

#include <cstdint>
#include <memory>
#include <vector>

#include "rbee/engine/text/draft/draft_model.h"
#include "rbee/engine/text/scheduler.h"

namespace rbee::engine {

// Draft tokens of one sequence at most.
inline constexpr int32_t kMaxDrafts = 64;

class Drafter {
 public:
  using Parts = std::vector<Scheduler::Part>;

  // pool: of the sequences; outlives this. model: what drafts; null: what followed the last time.
  Drafter(KvBlockPool& pool, std::unique_ptr<DraftModel> model)
      : pool_(pool), model_(std::move(model)) {}

  // Parts that generate, whose tickets are LlmJobs, get draft tokens as far as the step and the
  // cache have room that nobody else needs. scheduler: that planned them. What fails in a draft
  // model costs the draft tokens, no request; throws a device's error.
  void add_drafts(Parts& parts, const Scheduler& scheduler);

  DraftModel* model() const { return model_.get(); }  // null: none

 private:
  bool spares(int64_t running) const { return pool_.available() > running; }
  void draft_from_texts(Parts& parts, int64_t running, int64_t room);
  void draft_by_model(Parts& parts, int64_t running, int64_t room);

  KvBlockPool& pool_;
  const std::unique_ptr<DraftModel> model_;
};

}  // namespace rbee::engine
