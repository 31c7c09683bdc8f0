#include "rbee/engine/text/sampling/token_choice.h"

#include <algorithm>
#include <vector>

namespace rbee::engine {
namespace {

TopLogits row_of(const StepLogits& logits, int64_t row) {
  const auto count = static_cast<size_t>(logits.wanted.count);
  const auto at = static_cast<size_t>(row);
  const TopLogitRows& found = logits.found;
  return {.values = found.values.subspan(at * count, count),
          .ids = found.ids.subspan(at * count, count),
          .sum = found.sums.empty() ? 0.0f : found.sums[at],
          .vocab = logits.wanted.vocab,
          .drawn = found.drawn.empty()
                       ? std::nullopt
                       : std::optional(TopLogits::Drawn{found.drawn[at], found.numbers[at]})};
}

std::span<float> whole_row(const StepLogits& logits, int64_t row) {
  return logits.stepper.logit_row(row).first(static_cast<size_t>(logits.wanted.vocab));
}

// A failing device's ids must not become an index on the host.
void check_from_device(int32_t id, int64_t vocab) {
  if (id < 0 || id >= vocab) {
    fail(Code::internal, "sample", "token ", id, " is outside of the ", vocab, " known ones");
  }
}

std::optional<Chosen> choose_from_top_logits(TokenSampler& sampler, std::optional<int32_t> count,
                                             const StepLogits& logits, const LogitRow& row) {
  const TopLogitsWanted& wanted = logits.wanted;
  if (wanted.count == 0) return std::nullopt;
  const TopLogits top_logits = row_of(logits, row.index);
  for (const int32_t top_logit : top_logits.ids) check_from_device(top_logit, wanted.vocab);
  const std::optional<int32_t> id = sampler.sample(top_logits, row.history, row.draft);
  if (!id) return std::nullopt;
  check_from_device(*id, wanted.vocab);
  Chosen out{*id, {}};
  if (count) {
    // The sum has another scale if top-p cuts after the temperature.
    const bool unscaled =
        wanted.scales.empty() || wanted.scales[static_cast<size_t>(row.index)] == 1;
    out.scored = unscaled && *count <= wanted.count
                     ? logprobs_of(top_logits, *id, *count)
                     : logprobs_of(whole_row(logits, row.index), *id, *count);
  }
  return out;
}

Chosen choose_from_row(TokenSampler& sampler, std::optional<int32_t> count,
                       const StepLogits& logits, const LogitRow& row) {
  const std::span<float> all = whole_row(logits, row.index);
  std::vector<float> unchanged;  // by the sampler
  if (count) unchanged.assign(all.begin(), all.end());
  Chosen out{sampler.sample(all, row.history, row.draft), {}};
  if (count) out.scored = logprobs_of(unchanged, out.id, *count);
  return out;
}

}  // namespace

void RowsWanted::add(const TokenSampler& sampler, std::optional<int32_t> logprobs, int64_t rows) {
  const TokenSampler::Wanted own = sampler.wanted(vocab_);
  // Log probabilities belong to a row whose top logits are searched anyway.
  const int64_t scored = own.top_logits == 0 ? 0 : std::max(logprobs.value_or(0), 1);
  count_ = std::max({count_, own.top_logits, scored});
  alone_ &= own.top_logits == 1;
  sums_ |= own.sum || logprobs;
  draws_ &= sampler.can_draw_on_device(vocab_);
  samplers_.resize(samplers_.size() + static_cast<size_t>(rows), &sampler);
  scales_.resize(scales_.size() + static_cast<size_t>(rows), own.sum ? sampler.scale() : 1.0f);
}

void RowsWanted::add_scored(int32_t top, int64_t rows) {
  count_ = std::max<int64_t>({count_, top, 1});
  sums_ = true;
  draws_ = false;
  scales_.resize(scales_.size() + static_cast<size_t>(rows), 1.0f);
}

TopLogitsWanted RowsWanted::top_logits() const {
  TopLogitsWanted out{.count = 0, .vocab = vocab_, .scales = {}};
  if (count_ == 0) return out;
  // Among many rows one with a banned likeliest token would often delay the others.
  if (draws_ && (!likeliest_alone() || samplers_.size() > 1)) {
    out.count = std::min(kDrawnTopLogits, vocab_);
    out.scales = scales_;
    out.draws = this;
    return out;
  }
  out.count = lead_count(count_, vocab_);
  if (sums_) out.scales = scales_;
  return out;
}

void RowsWanted::describe(int64_t row, DeviceDraws& to) const {
  samplers_[static_cast<size_t>(row)]->describe_draws(to);
}

Chosen choose_token(TokenSampler& sampler, std::optional<int32_t> logprobs,
                    const StepLogits& logits, const LogitRow& row) {
  const std::optional<Chosen> chosen = choose_from_top_logits(sampler, logprobs, logits, row);
  return chosen ? *chosen : choose_from_row(sampler, logprobs, logits, row);
}

Chosen force_token(int32_t id, std::optional<int32_t> logprobs, const StepLogits& logits,
                   int64_t row) {
  if (!logprobs) return {id, {}};
  return {id, logprobs_of(whole_row(logits, row), id, *logprobs)};
}

RankedToken score_token(int32_t id, int32_t top, const StepLogits& logits, int64_t row) {
  const TopLogits top_logits = row_of(logits, row);
  for (const int32_t top_logit : top_logits.ids) check_from_device(top_logit, logits.wanted.vocab);
  if (std::ranges::find(top_logits.ids, id) != top_logits.ids.end()) {
    const auto at = std::ranges::find(top_logits.ids, id) - top_logits.ids.begin();
    const float logit = top_logits.values[static_cast<size_t>(at)];
    const auto first = std::ranges::find(top_logits.values, logit) - top_logits.values.begin();
    return {logprobs_of(top_logits, id, top), static_cast<int32_t>(first) + 1};
  }
  const std::span<const float> all = whole_row(logits, row);
  const float logit = all[static_cast<size_t>(id)];
  const auto larger = std::ranges::count_if(all, [logit](float other) { return other > logit; });
  return {logprobs_of(top_logits, TokenLogit{id, logit}, top), static_cast<int32_t>(larger) + 1};
}

}  // namespace rbee::engine
