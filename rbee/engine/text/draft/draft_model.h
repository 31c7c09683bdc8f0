#pragma once
// A smaller model with the same vocabulary that drafts the larger model's next tokens, one after
// another (Leviathan et al. 2023; Chen et al. 2023). Its cache uses the block numbers of the larger
// model's cache: a sequence that shares, loses or gives back blocks there does so here too.

#include <cstdint>
#include <optional>
#include <span>

#include "rbee/engine/text/llm_job.h"
#include "rbee/engine/text/sampling/token_choice.h"
#include "rbee/engine/text/step/stepper.h"
#include "rbee/engine/text/text_model.h"

namespace rbee::engine {

struct DraftModelOptions {
  int64_t step_tokens = 0;  // most tokens of one evaluation
  int64_t vocab = 0;        // tokens
  float min_p = 0;          // stop drafting when no token has this probability, 0 to 1
  std::optional<DType> kv_dtype;
};

class DraftModel {
 public:
  // pool: the pool of the larger model; it must outlive this.
  DraftModel(TextModel model, KvBlockPool& pool, const DraftModelOptions& options);

  struct Place {
    LlmJob* job;
    int64_t length;  // leading tokens of the sequence to evaluate; all of them if it wants drafts
    int64_t drafts;  // most draft tokens wanted
  };
  // Evaluates the tokens that its cache lacks and adds draft tokens to the sequences that want any,
  // all in one batch. A sequence that is far behind gets its draft tokens in a later call. Each
  // sequence must hold the blocks that it needs.
  void draft(std::span<const Place> places);

  Stepper& stepper() { return stepper_; }
  const ModelInfo& info() const { return model_.info; }

 private:
  struct Drafting {
    LlmJob* job;
    TokenSampler* sampler;
    int64_t left;  // most draft tokens to come
  };
  // One step: its work, and the sequences that get a draft token after their last token.
  struct Round {
    std::vector<Stepper::Work> work;
    std::vector<int32_t> rows;
    std::vector<Drafting> drafting;  // one for each row
  };

  Round first_round(std::span<const Place> places) const;
  static Round next_round(std::vector<Drafting> drafting);
  void evaluate(Round& round);
  bool add_draft(Drafting& drafting, const StepLogits& logits, int64_t row) const;

  const TextModel model_;
  const DraftModelOptions options_;
  Stepper stepper_;
};

// Throws invalid_argument if the draft model does not fit the larger one: its vocabulary differs
// (the message names both sizes, or the first token that differs), its context is shorter, or it is
// on another device. Throws unsupported if either has layers with states.
void check_draft(const TextModel& draft, const TextModel& target);

}  // namespace rbee::engine
