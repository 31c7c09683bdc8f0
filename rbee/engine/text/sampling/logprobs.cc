#include "rbee/engine/text/sampling/logprobs.h"

#include <algorithm>
#include <cmath>

#include "rbee/core/error.h"

namespace rbee::engine {
namespace {

// The log-softmax at `logit`. A model that computes NaN or infinity has none.
float logprob_of(double logit, double log_sum) {
  if (!std::isfinite(log_sum) || std::isnan(logit)) {
    fail(Code::internal, "logprobs", "the model gave no finite logit");
  }
  return static_cast<float>(logit - log_sum);
}

double log_sum_of(std::span<const float> logits, const Candidates& largest) {
  if (largest.list().empty()) return std::nan("");
  const double most = largest.list().front().logit;
  double sum = 0;
  for (const float x : logits) sum += std::isnan(x) ? 0 : std::exp(double{x} - most);
  return most + std::log(sum);
}

}  // namespace

RowLogprobs logprobs_of(std::span<const float> logits, int32_t chosen, int64_t count) {
  Candidates candidates;
  candidates.take_top_k(logits, static_cast<size_t>(std::max<int64_t>(count, 1)));
  const double log_sum = log_sum_of(logits, candidates);
  RowLogprobs out{.chosen = {chosen, logprob_of(logits[static_cast<size_t>(chosen)], log_sum)},
                  .top = {}};
  for (const Candidate& c : candidates.list()) {
    if (std::ssize(out.top) == count) break;
    out.top.push_back({c.id, logprob_of(c.logit, log_sum)});
  }
  return out;
}

RowLogprobs logprobs_of(std::span<const float> logits, int32_t chosen,
                        std::span<const int32_t> shown) {
  Candidates candidates;
  candidates.take_top_k(logits, 1);
  const double log_sum = log_sum_of(logits, candidates);
  const auto scored = [&](int32_t id) {
    return Logprob{id, logprob_of(logits[static_cast<size_t>(id)], log_sum)};
  };
  RowLogprobs out{.chosen = scored(chosen), .top = {}};
  std::vector<int32_t> ids(shown.begin(), shown.end());
  ids.push_back(chosen);
  std::ranges::sort(ids);
  const auto again = std::ranges::unique(ids);
  ids.erase(again.begin(), again.end());
  for (const int32_t id : ids) out.top.push_back(scored(id));
  std::ranges::stable_sort(out.top, std::ranges::greater{}, &Logprob::logprob);
  return out;
}

RowLogprobs logprobs_of(const TopLogits& top_logits, TokenLogit chosen, int64_t count) {
  const double log_sum = double{top_logits.values.front()} + std::log(double{top_logits.sum});
  RowLogprobs out{.chosen = {chosen.id, logprob_of(chosen.logit, log_sum)}, .top = {}};
  const auto most = std::min(static_cast<size_t>(count), top_logits.values.size());
  for (size_t i = 0; i < most; ++i) {
    out.top.push_back({top_logits.ids[i], logprob_of(top_logits.values[i], log_sum)});
  }
  return out;
}

RowLogprobs logprobs_of(const TopLogits& top_logits, int32_t chosen, int64_t count) {
  const auto at =
      static_cast<size_t>(std::ranges::find(top_logits.ids, chosen) - top_logits.ids.begin());
  RB_ASSERT(at < top_logits.ids.size());
  return logprobs_of(top_logits, TokenLogit{chosen, top_logits.values[at]}, count);
}

}  // namespace rbee::engine
