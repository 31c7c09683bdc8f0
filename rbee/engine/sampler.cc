#include "rbee/engine/sampler.h"

#include <algorithm>
#include <cmath>

namespace rbee::engine {
namespace {

// Uniform in [0, 1) from the top 53 bits, so that every standard library draws the same number.
double unit_uniform(std::mt19937_64& random) {
  return static_cast<double>(random() >> 11) * 0x1p-53;
}

}  // namespace

int32_t argmax(std::span<const float> values) {
  int32_t best = -1;
  for (size_t i = 0; i < values.size(); ++i) {
    if (best < 0 ? !std::isnan(values[i]) : values[i] > values[static_cast<size_t>(best)]) {
      best = static_cast<int32_t>(i);
    }
  }
  return best;
}

Sampler::Sampler(const SamplingParams& params, uint64_t seed) : params_(params), random_(seed) {}

int32_t Sampler::sample(std::span<float> logits, std::span<const int32_t> history) {
  apply_penalties(logits, history);
  const int32_t likeliest = argmax(logits);
  if (likeliest < 0 || !std::isfinite(logits[static_cast<size_t>(likeliest)])) {
    fail(Code::internal, "sample", "the model gave no finite logit");
  }
  if (params_.temperature <= 0) return likeliest;
  const bool narrow = params_.top_k > 0 && static_cast<size_t>(params_.top_k) < logits.size();
  if (narrow) {
    select_top_k(logits);
  } else {
    keep_all(logits);
  }
  normalise();
  if (params_.top_p < 1.0f) cut_top_p();
  if (params_.min_p > 0.0f) cut_min_p();
  return draw();
}

void Sampler::apply_penalties(std::span<float> logits, std::span<const int32_t> history) {
  const bool repetition = params_.repetition_penalty != 1.0f;
  if (!repetition && params_.frequency_penalty == 0 && params_.presence_penalty == 0) return;
  const auto window = static_cast<size_t>(params_.repeat_last_n);
  if (window > 0 && history.size() > window) history = history.last(window);
  recent_.assign(history.begin(), history.end());
  std::sort(recent_.begin(), recent_.end());
  for (size_t i = 0; i < recent_.size();) {
    const int32_t id = recent_[i];
    size_t end = i;
    while (end < recent_.size() && recent_[end] == id) ++end;
    const auto count = static_cast<float>(end - i);
    i = end;
    if (id < 0 || static_cast<size_t>(id) >= logits.size()) continue;
    float& logit = logits[static_cast<size_t>(id)];
    if (repetition) {
      logit = logit > 0 ? logit / params_.repetition_penalty : logit * params_.repetition_penalty;
    }
    logit -= count * params_.frequency_penalty + params_.presence_penalty;
  }
}

// Keeps the k largest in one pass: most values lose against the heap's smallest at once.
void Sampler::select_top_k(std::span<const float> logits) {
  const auto k = static_cast<size_t>(params_.top_k);
  const auto likelier = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  };
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    const float logit = logits[i];
    if (std::isnan(logit)) continue;
    if (candidates_.size() < k) {
      candidates_.push_back({logit, static_cast<int32_t>(i), 0});
      std::push_heap(candidates_.begin(), candidates_.end(), likelier);
    } else if (logit > candidates_.front().logit) {
      std::pop_heap(candidates_.begin(), candidates_.end(), likelier);
      candidates_.back() = {logit, static_cast<int32_t>(i), 0};
      std::push_heap(candidates_.begin(), candidates_.end(), likelier);
    }
  }
  std::sort(candidates_.begin(), candidates_.end(), likelier);
}

void Sampler::keep_all(std::span<const float> logits) {
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!std::isnan(logits[i])) candidates_.push_back({logits[i], static_cast<int32_t>(i), 0});
  }
}

// Probabilities at the temperature; sums to one over the candidates.
void Sampler::normalise() {
  float top = candidates_.front().logit;
  for (const Candidate& c : candidates_) top = std::max(top, c.logit);
  double sum = 0;
  for (Candidate& c : candidates_) {
    c.probability = std::exp((c.logit - top) / params_.temperature);
    sum += c.probability;
  }
  for (Candidate& c : candidates_) c.probability = static_cast<float>(c.probability / sum);
}

// Keeps the likeliest tokens until their mass reaches p; the crossing token stays.
void Sampler::cut_top_p() {
  const auto likelier = [](const Candidate& a, const Candidate& b) {
    return a.probability != b.probability ? a.probability > b.probability : a.id < b.id;
  };
  // Sorting in growing steps: the nucleus is nearly always far smaller than the vocabulary.
  size_t sorted = 0;
  double mass = 0;
  for (size_t step = 256; sorted < candidates_.size(); step *= 4) {
    const size_t end = std::min(candidates_.size(), sorted + step);
    std::partial_sort(candidates_.begin() + static_cast<ptrdiff_t>(sorted),
                      candidates_.begin() + static_cast<ptrdiff_t>(end), candidates_.end(),
                      likelier);
    for (; sorted < end; ++sorted) {
      mass += candidates_[sorted].probability;
      if (mass >= params_.top_p) {
        candidates_.resize(sorted + 1);
        return;
      }
    }
  }
}

void Sampler::cut_min_p() {
  float top = 0;
  for (const Candidate& c : candidates_) top = std::max(top, c.probability);
  std::erase_if(candidates_,
                [&](const Candidate& c) { return c.probability < params_.min_p * top; });
}

int32_t Sampler::draw() {
  double total = 0;
  for (const Candidate& c : candidates_) total += c.probability;
  const double target = unit_uniform(random_) * total;
  double cumulative = 0;
  int32_t chosen = -1;
  for (const Candidate& c : candidates_) {
    if (c.probability <= 0) continue;
    chosen = c.id;
    cumulative += c.probability;
    if (target < cumulative) break;
  }
  return chosen;
}

}  // namespace rbee::engine
