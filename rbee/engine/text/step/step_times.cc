#include "rbee/engine/text/step/step_times.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace rbee::engine {
namespace {

constexpr double kNewest = 0.2;  // of a mean
// Older times do not say what tokens cost now.
constexpr int64_t kRemembered = 256;

void add(double& mean, double value, bool first) {
  mean += (first ? 1 : kNewest) * (value - mean);
}

int64_t whole(double tokens) {
  return std::max<int64_t>(std::llround(std::min(tokens, 1e9)), 0);
}

}  // namespace

void StepTimes::note(int64_t generated, int64_t prompts, double seconds) {
  if (generated + prompts < 1 || seconds <= 0) return;
  ++steps_;
  most_generated_ = std::max(most_generated_, generated);
  if (prompts > 0) {
    const double others = line().at(static_cast<double>(generated));
    const double own = std::max(seconds - others, seconds / 4) / static_cast<double>(prompts);
    return add(prompt_, own, prompt_ == 0);
  }
  const auto width = static_cast<size_t>(std::bit_width(static_cast<uint64_t>(generated)));
  Mean& mean = means_[std::min(width, means_.size()) - 1];
  add(mean.tokens, static_cast<double>(generated), mean.newest < 0);
  add(mean.seconds, seconds, mean.newest < 0);
  mean.newest = steps_;
}

// Through the smallest steps and the dearest larger ones: between steps of similar size noise sets
// the order, and some tokens cost more than others to choose.
StepTimes::Line StepTimes::line() const {
  const auto small = std::ranges::find_if(means_, [](const Mean& m) { return m.newest >= 0; });
  if (small == means_.end()) return {0, 0};
  double slope = 0;
  for (const Mean& mean : means_) {
    if (mean.newest < steps_ - kRemembered || mean.tokens < 2 * small->tokens) continue;
    slope = std::max(slope, (mean.seconds - small->seconds) / (mean.tokens - small->tokens));
  }
  return {small->seconds - slope * small->tokens, slope};
}

// Below 0 if a few tokens are far dearer than one.
double StepTimes::Line::at(double tokens) const {
  return std::max(start + slope * tokens, 0.0);
}

double StepTimes::one() const {
  return line().at(1);
}

double StepTimes::of(int64_t generated, int64_t prompts) const {
  return line().at(static_cast<double>(generated)) + prompt_ * static_cast<double>(prompts);
}

int64_t StepTimes::generated_in(double seconds, int64_t unknown) const {
  const auto [start, slope] = line();
  return slope > 0 ? whole((seconds - start) / slope) : unknown;
}

int64_t StepTimes::prompts_in(double seconds, int64_t unknown) const {
  return prompt_ > 0 ? whole(seconds / prompt_) : unknown;
}

}  // namespace rbee::engine
