#pragma once
// Chooses a request's next token from the logits of a step.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rbee/engine/text/sampling/logprobs.h"
#include "rbee/engine/text/sampling/sampler.h"
#include "rbee/engine/text/step/stepper.h"

namespace rbee::engine {

// The logits of the last step.
struct StepLogits {
  Stepper& stepper;  // can read whole rows
  const TopLogitRows& found;
  const TopLogitsWanted& wanted;
};

// One row, and the text before the token that it predicts.
struct LogitRow {
  int64_t index;
  std::span<const int32_t> history;
  const DraftToken* draft = nullptr;  // for that token; null: none
};

// Collects what samplers need of a step's rows, in the rows' order.
class RowsWanted final : private DrawForecast {
 public:
  // draws: the device may draw before the samplers do. Samplers must live as long as this.
  explicit RowsWanted(int64_t vocab, bool draws = false) : vocab_(vocab), draws_(draws) {}

  // Adds the next `rows` rows. logprobs: see TextRequest::logprobs.
  void add(const TokenSampler& sampler, std::optional<int32_t> logprobs, int64_t rows);
  // Adds the next `rows` rows, for score_token() with `top` likeliest tokens.
  void add_scored(int32_t top, int64_t rows);
  // What the device must find; count = 0: nothing, samplers will read whole rows. Valid as long as
  // this object.
  TopLogitsWanted top_logits() const;
  // Whether the device nearly always knows each row's token before the host does.
  bool drawn_on_device() const { return likeliest_alone() || draws_; }

 private:
  void describe(int64_t row, DeviceDraws& to) const override;
  bool likeliest_alone() const { return alone_ && count_ == 1 && !sums_; }

  int64_t vocab_;
  bool draws_;
  std::vector<const TokenSampler*> samplers_;  // one for each row, if draws are foreseen
  bool alone_ = true;
  int64_t count_ = 0;
  bool sums_ = false;
  std::vector<float> scales_;
};

struct Chosen {
  int32_t id;
  std::optional<RowLogprobs> scored;  // if the request asks for it
};

// Reads the whole row if the top logits do not decide. logprobs: see TextRequest::logprobs. Throws
// internal for logits from a failing device.
Chosen choose_token(TokenSampler& sampler, std::optional<int32_t> logprobs,
                    const StepLogits& logits, const LogitRow& row);

// Takes a forced token, with the figures that the request asks for.
Chosen force_token(int32_t id, std::optional<int32_t> logprobs, const StepLogits& logits,
                   int64_t row);

// A given token that follows a row, with its figures.
struct RankedToken {
  RowLogprobs scored;
  int32_t rank;  // 1 + number of tokens with larger logits
};
// row: one of add_scored(). Reads the whole row if the token is not among the top logits. Throws
// internal for logits from a failing device.
RankedToken score_token(int32_t id, int32_t top, const StepLogits& logits, int64_t row);

}  // namespace rbee::engine
