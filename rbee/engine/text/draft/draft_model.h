#pragma once
// A smaller model with the same vocabulary that drafts what another one says next, one token after
// another (Leviathan et al. 2023; Chen et al. 2023). Its keys and values lie in blocks of the same
// numbers as the other model's: who shares, loses or gives back those does so with these.

#include <cstdint>
#include <optional>
#include <span>

#include "rbee/engine/text/llm_job.h"
#include "rbee/engine/text/sampling/token_choice.h"
#include "rbee/engine/text/step/stepper.h"
#include "rbee/engine/text/text_model.h"

namespace rbee::engine {

struct DraftModelOptions {
  int64_t step_tokens = 0;  // evaluated at once at most
  int64_t vocab = 0;        // tokens
  float min_p = 0;          // drafting ends where no token has this probability, 0 to 1
  std::optional<DType> kv_dtype;
};

class DraftModel {
 public:
  // pool: of the model that is helped; outlives this.
  DraftModel(TextModel model, KvBlockPool& pool, const DraftModelOptions& options);

  struct Place {
    LlmJob* job;
    int64_t length;  // leading tokens of the sequence to know; of one that drafts, all
    int64_t drafts;  // wanted at most
  };
  // Evaluates what it does not know of the sequences and adds draft tokens to those that want any,
  // all together. One that is far behind gets its draft tokens another time. Each has the blocks it
  // takes.
  void draft(std::span<const Place> places);

  Stepper& stepper() { return stepper_; }
  const ModelInfo& info() const { return model_.info; }

 private:
  struct Drafting {
    LlmJob* job;
    Sampler* sampler;
    int64_t left;  // draft tokens to come at most
  };
  // One step: its work, and whose last token of it is followed by a draft token.
  struct Round {
    std::vector<Stepper::Work> work;
    std::vector<int32_t> rows;
    std::vector<Drafting> drafting;  // of the rows
  };

  Round first_round(std::span<const Place> places) const;
  static Round next_round(std::vector<Drafting> drafting);
  void evaluate(Round& round);
  bool add_draft(Drafting& drafting, const StepLogits& logits, int64_t row) const;

  const TextModel model_;
  const DraftModelOptions options_;
  Stepper stepper_;
};

// Throws invalid_argument where a draft model cannot help another one: its vocabulary is not the
// same (the message names both sizes, or the first token that differs), its context is shorter, or
// it is on another device.
void check_draft(const TextModel& draft, const TextModel& target);

}  // namespace rbee::engine
