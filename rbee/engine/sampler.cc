#include "rbee/engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rbee/ops/top_k.h"

namespace rbee::engine {
namespace {

// Relative errors that decisions from leaders allow for: of the row's sum, added in f32 by a tree,
// and of weights that the whole row's sampler rounds once more.
constexpr double kSumError = 4e-6;
constexpr double kWeightError = 1e-6;

// Penalised tokens that wanted() makes room for. More are rare among the leaders of one row.
constexpr int64_t kPenalisedRoom = 128;
// Leaders beyond the usual number that wanted() asks for under a mask, which may allow few of them.
constexpr int64_t kMaskedRoom = 192;

// Uniform in [0, 1) from the top 53 bits, so that every standard library draws the same number.
double unit_uniform(std::mt19937_64& random) {
  return static_cast<double>(random() >> 11) * 0x1p-53;
}

void check_finite(float largest) {
  if (!std::isfinite(largest)) fail(Code::internal, "sample", "the model gave no finite logit");
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

bool Sampler::has_penalties() const {
  return params_.repetition_penalty != 1.0f || params_.frequency_penalty != 0 ||
         params_.presence_penalty != 0;
}

bool Sampler::penalties_only_lower() const {
  return params_.repetition_penalty >= 1.0f && params_.frequency_penalty >= 0 &&
         params_.presence_penalty >= 0;
}

Sampler::Wanted Sampler::wanted(int64_t vocab) const {
  if (!penalties_only_lower()) return {};
  Wanted out;
  const bool narrow = params_.top_k > 0 && params_.top_k < vocab;
  if (params_.temperature <= 0) {
    out.leaders = 1;
  } else if (narrow) {
    if (params_.top_k > kMaxTopK) return {};
    out.leaders = params_.top_k;
  } else if (params_.top_p < 1.0f) {
    out = {.leaders = kMaxTopK, .sum = true};
  } else if (params_.min_p > 0.0f) {
    out.leaders = kMaxTopK;
  } else {
    return {};  // any token may be drawn
  }
  if (has_penalties()) {
    const int64_t window = params_.repeat_last_n > 0 ? params_.repeat_last_n : kPenalisedRoom;
    out.leaders += std::min(window, kPenalisedRoom);
  }
  if (!mask_.all()) out.leaders += kMaskedRoom;
  out.leaders = std::min({out.leaders, kMaxTopK, vocab});
  return out;
}

int32_t Sampler::sample(std::span<float> logits, std::span<const int32_t> history) {
  apply_mask(logits);
  count_repeats(history);
  for (const Repeat& repeat : repeats_) {
    if (static_cast<size_t>(repeat.id) >= logits.size()) continue;
    float& logit = logits[static_cast<size_t>(repeat.id)];
    logit = penalised(logit, repeat.count);
  }
  const int32_t likeliest = argmax(logits);
  check_finite(likeliest < 0 ? std::nanf("") : logits[static_cast<size_t>(likeliest)]);
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

std::optional<int32_t> Sampler::sample(const Leaders& leaders, std::span<const int32_t> history) {
  if (leaders.values.empty() || !penalties_only_lower()) return std::nullopt;
  count_repeats(history);
  const bool complete = allow_leaders(leaders);
  if (candidates_.empty()) return std::nullopt;
  const MassBounds mass = penalise_leaders(leaders);
  const size_t certain = count_certain(leaders, complete);
  if (certain == 0) return std::nullopt;
  check_finite(candidates_.front().logit);
  if (params_.temperature <= 0) return candidates_.front().id;
  if (params_.top_k > 0 && params_.top_k < leaders.vocab) {
    // From here on all is as with the whole row.
    const auto kept = static_cast<size_t>(params_.top_k);
    if (kept > certain && !complete) return std::nullopt;
    candidates_.resize(std::min(kept, certain));
    normalise();
    if (params_.top_p < 1.0f) cut_top_p();
    if (params_.min_p > 0.0f) cut_min_p();
    return draw();
  }
  if (!cut_leaders(certain, complete, mass)) return std::nullopt;
  return draw_with_margin();
}

void Sampler::count_repeats(std::span<const int32_t> history) {
  repeats_.clear();
  if (!has_penalties()) return;
  const auto window = static_cast<size_t>(params_.repeat_last_n);
  if (window > 0 && history.size() > window) history = history.last(window);
  recent_.assign(history.begin(), history.end());
  std::sort(recent_.begin(), recent_.end());
  for (const int32_t id : recent_) {
    if (id < 0) continue;
    if (repeats_.empty() || repeats_.back().id != id) repeats_.push_back({id, 0});
    ++repeats_.back().count;
  }
}

float Sampler::penalised(float logit, float count) const {
  if (params_.repetition_penalty != 1.0f) {
    logit = logit > 0 ? logit / params_.repetition_penalty : logit * params_.repetition_penalty;
  }
  return logit - (count * params_.frequency_penalty + params_.presence_penalty);
}

// Keeps the k largest in one pass: most values lose against the heap's smallest at once.
void Sampler::select_top_k(std::span<const float> logits) {
  const auto k = static_cast<size_t>(params_.top_k);
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

// Probabilities at the temperature, the likeliest token's being one.
void Sampler::weigh() {
  float top = candidates_.front().logit;
  for (const Candidate& c : candidates_) top = std::max(top, c.logit);
  for (Candidate& c : candidates_) {
    c.probability = std::exp((c.logit - top) / params_.temperature);
  }
}

// Probabilities that sum to one over the candidates.
void Sampler::normalise() {
  weigh();
  double sum = 0;
  for (const Candidate& c : candidates_) sum += c.probability;
  for (Candidate& c : candidates_) c.probability = static_cast<float>(c.probability / sum);
}

// Keeps the likeliest tokens until their mass reaches p; the crossing token stays.
void Sampler::cut_top_p() {
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
  const double target = uniform() * total;
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

double Sampler::uniform() {
  const double out = undrawn_ ? *undrawn_ : unit_uniform(random_);
  undrawn_.reset();
  return out;
}

void Sampler::apply_mask(std::span<float> logits) const {
  if (mask_.all()) return;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!mask_.has(static_cast<int32_t>(i))) logits[i] = -std::numeric_limits<float>::infinity();
  }
}

// The leaders that may come become candidates. True when no other token may.
bool Sampler::allow_leaders(const Leaders& leaders) {
  candidates_.clear();
  for (size_t i = 0; i < leaders.values.size(); ++i) {
    if (mask_.has(leaders.ids[i])) candidates_.push_back({leaders.values[i], leaders.ids[i], 0});
  }
  if (std::ssize(leaders.values) == leaders.vocab) return true;
  return !mask_.all() && std::ssize(candidates_) == mask_.count;
}

// Of the row that may come, before penalties, in weights under the first leader's.
Sampler::MassBounds Sampler::bound_mass(const Leaders& leaders) const {
  const double error = kSumError * double{leaders.sum};
  if (mask_.all()) return {.low = double{leaders.sum} - error, .high = double{leaders.sum} + error};
  const auto weight = [&](float logit) {
    return std::exp((double{logit} - double{leaders.values.front()}) * double{scale()});
  };
  double seen = 0, allowed = 0;
  for (const float value : leaders.values) seen += weight(value);
  for (const Candidate& c : candidates_) allowed += weight(c.logit);
  const double unseen = static_cast<double>(mask_.count - std::ssize(candidates_));
  const double rest = std::min(std::max(double{leaders.sum} + error - seen, 0.0),
                               unseen * weight(leaders.values.back()));
  return {.low = allowed * (1 - kSumError), .high = allowed * (1 + kSumError) + rest};
}

// Candidates with penalties, likeliest first. Returns the mass after penalties of the row that may
// come, where Leaders::sum is known.
Sampler::MassBounds Sampler::penalise_leaders(const Leaders& leaders) {
  const MassBounds before = bound_mass(leaders);
  double removed = 0, added = 0;  // under the first leader's
  size_t outside = repeats_.size();
  const auto weight = [&](float logit) {
    return std::exp((double{logit} - double{leaders.values.front()}) * double{scale()});
  };
  for (Candidate& c : candidates_) {
    const auto repeat = std::ranges::lower_bound(repeats_, c.id, {}, &Repeat::id);
    if (repeat == repeats_.end() || repeat->id != c.id) continue;
    --outside;
    removed += weight(c.logit);
    c.logit = penalised(c.logit, repeat->count);
    added += weight(c.logit);
  }
  std::sort(candidates_.begin(), candidates_.end(), likelier);
  // Tokens outside of the leaders weigh no more than the last of them, and less after penalties.
  const double unseen = static_cast<double>(outside) * weight(leaders.values.back());
  const double error = kSumError * removed;
  const double factor = 1 / weight(candidates_.front().logit);
  return {.low = (before.low - removed + added - error - unseen) * factor,
          .high = (before.high - removed + added + error) * factor};
}

// Candidates in front that are the first of the whole row, in the row's order.
size_t Sampler::count_certain(const Leaders& leaders, bool complete) const {
  if (complete) return candidates_.size();
  // Nothing unseen comes before what was the last.
  const Candidate last{leaders.values.back(), leaders.ids.back(), 0};
  const auto end =
      std::ranges::find_if(candidates_, [&](const Candidate& c) { return likelier(last, c); });
  return static_cast<size_t>(end - candidates_.begin());
}

// What top-p and min-p keep of the row, without top-k. False when it is not certain.
bool Sampler::cut_leaders(size_t certain, bool complete, const MassBounds& mass) {
  candidates_.resize(certain);
  weigh();
  const bool nucleus = params_.top_p < 1.0f;
  if (nucleus && !cut_leaders_top_p(mass)) return false;
  if (params_.min_p > 0.0f) return cut_leaders_min_p(nucleus || complete);
  return nucleus;
}

bool Sampler::cut_leaders_top_p(const MassBounds& mass) {
  double sum = 0;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    sum += candidates_[i].probability;
    if (sum >= params_.top_p * mass.high * (1 + kWeightError)) {
      candidates_.resize(i + 1);
      return true;
    }
    if (!(sum < params_.top_p * mass.low * (1 - kWeightError))) return false;
  }
  return false;
}

// seen: no token but the candidates can be kept.
bool Sampler::cut_leaders_min_p(bool seen) {
  const float least = params_.min_p * candidates_.front().probability;
  if (!seen && !(candidates_.back().probability < least)) return false;
  const auto close = [&](const Candidate& c) {
    return std::abs(double{c.probability} - double{least}) <= kWeightError * double{least};
  };
  if (std::ranges::any_of(candidates_, close)) return false;
  std::erase_if(candidates_, [&](const Candidate& c) { return c.probability < least; });
  // A row that nothing has sorted is drawn from in the order of its ids.
  if (params_.top_p >= 1.0f) std::ranges::sort(candidates_, {}, &Candidate::id);
  return true;
}

// draw(), unless the number drawn lies so close to a border that rounding decides.
std::optional<int32_t> Sampler::draw_with_margin() {
  double total = 0;
  for (const Candidate& c : candidates_) total += c.probability;
  const double number = uniform();
  double cumulative = 0;
  for (const Candidate& c : candidates_) {
    cumulative += c.probability;
    const double left = cumulative - number * total;
    if (std::abs(left) <= kWeightError * total) break;
    if (left > 0) return c.id;
  }
  undrawn_ = number;
  return std::nullopt;
}

}  // namespace rbee::engine
