#include "rbee/engine/text/sampling/mirostat.h"

#include <algorithm>
#include <cmath>

namespace rbee::engine {
namespace {

// The exponent of Zipf's law is estimated from this many likeliest tokens.
constexpr size_t kEstimated = 100;

}  // namespace

Mirostat::Mirostat(const SamplingParams& params)
    : version_(params.mirostat),
      tau_(params.mirostat_tau),
      eta_(params.mirostat_eta),
      mu_(2 * params.mirostat_tau) {}

void Mirostat::cut(Candidates& candidates, int64_t vocab) const {
  if (version_ == 2) return candidates.cut_surprise(mu_);
  cut_by_exponent(candidates, vocab);
}

// The paper's equations 30 and 31: s by least squares, then k.
void Mirostat::cut_by_exponent(Candidates& candidates, int64_t vocab) const {
  candidates.cut_top_k(candidates.size());  // sorted
  candidates.softmax();
  const std::vector<Candidate>& list = candidates.list();
  double products = 0, squares = 0;
  for (size_t i = 0; i + 1 < std::min(kEstimated, list.size()); ++i) {
    if (!(list[i + 1].probability > 0)) break;
    const double t = std::log(static_cast<double>(i + 2) / static_cast<double>(i + 1));
    const double b = std::log(double{list[i].probability} / double{list[i + 1].probability});
    products += t * b;
    squares += t * t;
  }
  if (squares == 0) return;
  const double s = products / squares;
  const double epsilon = s - 1;
  const double n = static_cast<double>(vocab);
  // At epsilon = 0 the quotient's limit is 1 / ln n.
  const double quotient =
      std::abs(epsilon) < 1e-9 ? 1 / std::log(n) : epsilon / (1 - std::pow(n, -epsilon));
  const double k = std::pow(quotient * std::exp2(double{mu_}), 1 / s);
  // Infinite and undefined if all tokens are alike.
  if (k < static_cast<double>(list.size())) candidates.cut_top_k(static_cast<size_t>(k));
}

void Mirostat::learn(const Candidate& drawn) {
  mu_ -= eta_ * (-std::log2(drawn.probability) - tau_);
}

}  // namespace rbee::engine
