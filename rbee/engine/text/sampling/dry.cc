#include "rbee/engine/text/sampling/dry.h"

#include <algorithm>
#include <cmath>

namespace rbee::engine {
namespace {

constexpr float kLargestPenalty = 1e30f;

}  // namespace

Dry::Dry(const SamplingParams& params)
    : multiplier_(params.dry_multiplier),
      base_(params.dry_base),
      allowed_length_(static_cast<size_t>(std::max(params.dry_allowed_length, 1))),
      last_n_(params.dry_penalty_last_n),
      breakers_(params.dry_sequence_breakers) {
  for (const std::string& text : breakers_) {
    longest_breaker_ = std::max(longest_breaker_, text.size());
  }
}

// Breakers are found in the text, wherever tokens begin and end: every token that an occurrence
// touches is part of one.
void Dry::mark_breakers(std::span<const int32_t> history) {
  const size_t known = breaks_.size();
  breaks_.resize(history.size(), 0);
  if (!piece_ || breakers_.empty()) return;
  for (size_t token = known; token < history.size(); ++token) {
    const size_t before = tail_.size();
    tail_ += piece_(history[token]);
    owners_.resize(tail_.size(), token);
    for (const std::string& breaker : breakers_) {
      const size_t from = before >= breaker.size() ? before - breaker.size() + 1 : 0;
      for (size_t at = tail_.find(breaker, from); at != std::string::npos;
           at = tail_.find(breaker, at + 1)) {
        for (size_t i = at; i < at + breaker.size(); ++i) breaks_[owners_[i]] = 1;
      }
    }
    const size_t over = tail_.size() - std::min(tail_.size(), longest_breaker_ - 1);
    tail_.erase(0, over);
    owners_.erase(owners_.begin(), owners_.begin() + static_cast<ptrdiff_t>(over));
  }
}

float Dry::penalty(size_t length) const {
  const double exponent = static_cast<double>(length - allowed_length_);
  return static_cast<float>(
      std::min<double>(multiplier_ * std::pow(double{base_}, exponent), kLargestPenalty));
}

const std::vector<Dry::Penalty>& Dry::penalties(std::span<const int32_t> history) {
  penalties_.clear();
  if (!on()) return penalties_;
  mark_breakers(history);
  const size_t window =
      last_n_ < 0 ? history.size() : std::min(history.size(), static_cast<size_t>(last_n_));
  find_matches(history.last(window), std::span<const char>(breaks_).last(window));
  keep_longest();
  return penalties_;
}

// matches_[i]: how many tokens that end i tokens before the end equal the last ones (Gusfield's Z
// algorithm on the reversed text), back to a breaker at most.
void Dry::find_matches(std::span<const int32_t> window, std::span<const char> breaks) {
  const size_t n = window.size();
  const auto at = [&](size_t back) { return window[n - 1 - back]; };
  size_t limit = 0;
  while (limit < n && breaks[n - 1 - limit] == 0) ++limit;
  if (limit < allowed_length_) return;
  matches_.assign(n, 0);
  size_t left = 0, right = 0;
  for (size_t i = 1; i < n; ++i) {
    size_t length = i < right ? std::min(right - i, matches_[i - left]) : 0;
    while (i + length < n && at(length) == at(i + length)) ++length;
    matches_[i] = length;
    if (i + length > right) {
      left = i;
      right = i + length;
    }
    const size_t repeated = std::min(length, limit);
    const bool breaker_next = breaks[n - i] != 0;
    if (repeated >= allowed_length_ && !breaker_next) {
      penalties_.push_back({at(i - 1), penalty(repeated)});
    }
  }
}

void Dry::keep_longest() {
  std::ranges::sort(penalties_, [](const Penalty& a, const Penalty& b) {
    return a.id != b.id ? a.id < b.id : a.subtract > b.subtract;
  });
  const auto rest = std::ranges::unique(penalties_, {}, &Penalty::id);
  penalties_.erase(rest.begin(), rest.end());
}

}  // namespace rbee::engine
