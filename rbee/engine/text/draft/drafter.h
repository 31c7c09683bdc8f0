#pragma once
// Adds draft tokens to generating sequences; the model verifies them in its next step.

#include <cstdint>
#include <memory>
#include <vector>

#include "rbee/engine/text/draft/draft_model.h"
#include "rbee/engine/text/scheduler.h"

namespace rbee::engine {

// Most draft tokens of one sequence.
inline constexpr int32_t kMaxDrafts = 64;

class Drafter {
 public:
  using Parts = std::vector<Scheduler::Part>;

  // pool: the sequences' pool; it must outlive this. model: the draft model; null: draft from the
  // text itself (ngram_draft.h).
  Drafter(KvBlockPool& pool, std::unique_ptr<DraftModel> model)
      : pool_(pool), model_(std::move(model)) {}

  // Adds draft tokens to generating parts while the step and the cache have spare room. Tickets
  // must be LlmJobs. scheduler: the one that planned the parts. If the draft model fails, requests
  // lose only their draft tokens; a device's error is thrown.
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
