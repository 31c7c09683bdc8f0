#pragma once
// The next token of a request from the logits of a step.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rbee/engine/text/sampling/logprobs.h"
#include "rbee/engine/text/sampling/sampler.h"
#include "rbee/engine/text/step/stepper.h"

namespace rbee::engine {

// What there is of the last step's logits.
struct StepLogits {
  Stepper& stepper;  // has the whole rows
  const TopLogitRows& found;
  const TopLogitsWanted& wanted;
};

// A row of them and the text before the token that it is for.
struct LogitRow {
  int64_t index;
  std::span<const int32_t> history;
  const DraftToken* draft = nullptr;  // of that token; null: none
};

// Gathers what samplers want of the rows of a step, in the rows' order.
class RowsWanted final : private DrawForecast {
 public:
  // draws: the device may draw ahead of the samplers, which live as long as this.
  explicit RowsWanted(int64_t vocab, bool draws = false) : vocab_(vocab), draws_(draws) {}

  // The next `rows` rows. logprobs: see TextRequest::logprobs.
  void add(const Sampler& sampler, std::optional<int32_t> logprobs, int64_t rows);
  // The next `rows` rows, each for score_token() with so many likeliest.
  void add_scored(int32_t top, int64_t rows);
  // What to look for on the device; count = 0: nothing, samplers will read whole rows. Valid as
  // long as this.
  TopLogitsWanted top_logits() const;
  // Whether each row is for a token that a device nearly always knows first.
  bool drawn_on_device() const { return likeliest_alone() || draws_; }

 private:
  void tell(int64_t row, DeviceDraws& to) const override;
  bool likeliest_alone() const { return alone_ && count_ == 1 && !sums_; }

  int64_t vocab_;
  bool draws_;
  std::vector<const Sampler*> samplers_;  // of the rows, where draws are foreseen
  bool alone_ = true;
  int64_t count_ = 0;
  bool sums_ = false;
  std::vector<float> scales_;
};

struct Chosen {
  int32_t id;
  std::optional<RowLogprobs> scored;  // where the request asks for it
};

// The whole row is read where the top logits do not decide. logprobs: see TextRequest::logprobs.
// Throws internal for what a failing device gives.
Chosen choose_token(Sampler& sampler, std::optional<int32_t> logprobs, const StepLogits& logits,
                    const LogitRow& row);

// A token that comes whatever the logits say, with the figures that the request asks for.
Chosen force_token(int32_t id, std::optional<int32_t> logprobs, const StepLogits& logits,
                   int64_t row);

// A token that follows a row, whatever samplers would have chosen.
struct RankedToken {
  RowLogprobs scored;
  int32_t rank;  // 1 + the tokens of larger logits
};
// row: one of add_scored(). The whole row is read where the token is not among the top logits.
// Throws internal for what a failing device gives.
RankedToken score_token(int32_t id, int32_t top, const StepLogits& logits, int64_t row);

}  // namespace rbee::engine
