#include "rbee/engine/text/sampling/candidates.h"

#include <algorithm>
#include <cmath>

#include "rbee/core/error.h"
#include "rbee/ops/decode.h"

namespace rbee::engine {
namespace {

constexpr ptrdiff_t kFew = 256;

double mass_of(std::vector<Candidate>::const_iterator from,
               std::vector<Candidate>::const_iterator to) {
  double mass = 0;
  for (; from != to; ++from) mass += from->probability;
  return mass;
}

// The index, likeliest first, of the candidate at which reached(mass) becomes true; else of the
// last with any probability. The likelier ones then stand before it, unordered from kFew on. It
// is nearly always below kFew; beyond, the search leaves out halves by their mass, since sorting a
// vocabulary takes fifty times as long as reading it.
template <typename Reached>
size_t crossing(std::vector<Candidate>& list, bool sorted, const Reached& reached) {
  auto first = list.begin(), end = list.end();
  double mass = 0;
  const auto walk = [&](auto to) {
    for (; first != to && first->probability > 0; ++first) {
      mass += first->probability;
      if (reached(mass)) return true;
    }
    return false;
  };
  const auto index = [&] { return static_cast<size_t>(first - list.begin()); };
  const auto last = [&] { return std::max<size_t>(index(), 1) - 1; };
  if (!sorted) {
    const auto few = list.begin() + std::min(kFew, end - first);
    std::partial_sort(first, few, end, likelier);
    if (walk(few)) return index();
    if (first < few) return last();
    while (end - first > kFew) {
      const auto middle = first + (end - first) / 2;
      std::nth_element(first, middle, end, likelier);
      const double more = mass_of(first, middle);
      if (reached(mass + more) || mass_of(middle, end) <= 0) {
        end = middle;
      } else {
        mass += more;
        first = middle;
      }
    }
    std::sort(first, end, likelier);
  }
  return walk(end) ? index() : last();
}

}  // namespace

void Candidates::take_all(std::span<const float> logits) {
  list_.clear();
  sorted_ = false;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > -INFINITY) list_.push_back({logits[i], static_cast<int32_t>(i), 0});
  }
}

// The k largest in one pass: most values lose against the heap's smallest at once.
void Candidates::take_top_k(std::span<const float> logits, size_t k) {
  list_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    const float logit = logits[i];
    if (!(logit > -INFINITY)) continue;
    if (list_.size() < k) {
      list_.push_back({logit, static_cast<int32_t>(i), 0});
      std::push_heap(list_.begin(), list_.end(), likelier);
    } else if (logit > list_.front().logit) {
      std::pop_heap(list_.begin(), list_.end(), likelier);
      list_.back() = {logit, static_cast<int32_t>(i), 0};
      std::push_heap(list_.begin(), list_.end(), likelier);
    }
  }
  std::sort(list_.begin(), list_.end(), likelier);
  sorted_ = true;
}

std::vector<Candidate>& Candidates::take_sorted() {
  list_.clear();
  sorted_ = true;
  return list_;
}

void Candidates::sort() {
  if (!sorted_) std::sort(list_.begin(), list_.end(), likelier);
  sorted_ = true;
}

float Candidates::largest() const {
  RB_ASSERT(!list_.empty());
  return sorted_ ? list_.front().logit
                 : std::ranges::max_element(list_, {}, &Candidate::logit)->logit;
}

double Candidates::weigh() {
  const float top = largest();
  double sum = 0;
  for (Candidate& c : list_) {
    c.probability = std::exp(c.logit - top);
    sum += c.probability;
  }
  return sum;
}

void Candidates::softmax() {
  const double sum = weigh();
  for (Candidate& c : list_) c.probability = static_cast<float>(c.probability / sum);
}

double Candidates::entropy() {
  softmax();
  double out = 0;
  for (const Candidate& c : list_) {
    if (c.probability > 0) out -= double{c.probability} * std::log(double{c.probability});
  }
  return out;
}

void Candidates::cut_top_k(size_t k) {
  if (k < list_.size() && !sorted_) {
    std::nth_element(list_.begin(), list_.begin() + static_cast<ptrdiff_t>(k), list_.end(),
                     likelier);
  }
  if (k < list_.size()) list_.resize(std::max<size_t>(k, 1));
  sort();
}

void Candidates::cut_top_p(float p) {
  softmax();
  const size_t last = crossing(list_, sorted_, [&](double mass) { return mass >= p; });
  list_.resize(last + 1);
  sort();
}

float Candidates::least_logit(float largest, float p) {
  return largest + std::log(p);
}

void Candidates::cut_min_p(float p) {
  const float top = largest();
  const float least = std::min(least_logit(top, p), top);
  std::erase_if(list_, [&](const Candidate& c) { return c.logit < least; });
  sort();
}

void Candidates::cut_typical_p(float p) {
  sort();
  const double expected = entropy();
  const auto distance = [&](const Candidate& c) {
    return c.probability > 0 ? std::abs(-std::log(double{c.probability}) - expected) : INFINITY;
  };
  std::ranges::stable_sort(list_, {}, distance);
  double mass = 0;
  for (size_t i = 0; i < list_.size(); ++i) {
    mass += list_[i].probability;
    if (mass > p) list_.resize(i + 1);
  }
  sorted_ = false;
  sort();
}

void Candidates::cut_top_n_sigma(float n) {
  const auto count = static_cast<double>(list_.size());
  double sum = 0, squares = 0;
  for (const Candidate& c : list_) sum += c.logit;
  const double mean = sum / count;
  for (const Candidate& c : list_) squares += (c.logit - mean) * (c.logit - mean);
  const double least = largest() - n * std::sqrt(squares / count);
  std::erase_if(list_, [&](const Candidate& c) { return double{c.logit} < least; });
  sort();
}

void Candidates::cut_xtc(float threshold) {
  sort();
  softmax();
  const auto end =
      std::ranges::find_if(list_, [&](const Candidate& c) { return c.probability < threshold; });
  if (end - list_.begin() > 1) list_.erase(list_.begin(), end - 1);
}

void Candidates::cut_surprise(float bits) {
  sort();
  softmax();
  const auto end = std::ranges::find_if(
      list_, [&](const Candidate& c) { return -std::log2(c.probability) > bits; });
  list_.erase(std::max(end, list_.begin() + 1), list_.end());
}

void Candidates::divide(float temperature) {
  const float top = largest();
  for (Candidate& c : list_) c.logit = (c.logit - top) / temperature;
}

Candidate Candidates::draw(double number) {
  const double sum = weigh();
  const size_t at = sorted_
                        ? crossing(list_, true, [&](double mass) { return number * sum < mass; })
                        : crossing_by_id(number * sum);
  Candidate chosen = list_[at];
  chosen.probability = static_cast<float>(chosen.probability / sum);
  return chosen;
}

// For a list in the order of the ids: the likeliest kDrawFront come first, then the others.
size_t Candidates::crossing_by_id(double wanted) {
  const size_t count = std::min(list_.size(), static_cast<size_t>(kDrawFront));
  front_.resize(count);
  std::partial_sort_copy(list_.begin(), list_.end(), front_.begin(), front_.end(), likelier);
  double mass = 0;
  size_t last = 0;
  for (const Candidate& c : front_) {
    if (c.probability <= 0) break;
    mass += c.probability;
    last = index_of(c.id);
    if (mass > wanted) return last;
  }
  for (size_t i = 0; i < list_.size(); ++i) {
    if (!likelier(front_.back(), list_[i]) || list_[i].probability <= 0) continue;
    mass += list_[i].probability;
    last = i;
    if (mass > wanted) break;
  }
  return last;
}

size_t Candidates::index_of(int32_t id) const {
  const auto at = std::ranges::lower_bound(list_, id, {}, &Candidate::id);
  return static_cast<size_t>(at - list_.begin());
}

Candidate Candidates::draw(const DraftToken& draft, double accept, double number) {
  softmax();
  const std::vector<TokenProbability>& among = draft.among;
  auto at = among.begin();
  // Long lists are in the order of the ids on both sides: the next entry is nearly always the one.
  const auto there = [&](int32_t id) -> double {
    if (at == among.end() || at->id != id) {
      at = std::ranges::lower_bound(among, id, {}, &TokenProbability::id);
    }
    return at != among.end() && at->id == id ? (at++)->probability : 0.0f;
  };
  const auto drafted = std::ranges::find(list_, draft.id, &Candidate::id);
  if (drafted != list_.end() && accept * there(draft.id) < drafted->probability) return *drafted;
  double rest = 0;
  for (const Candidate& c : list_) rest += std::max(c.probability - there(c.id), 0.0);
  if (rest <= 0) return draw(number);  // rounding: the distributions are the same
  double cumulative = 0;
  Candidate chosen = list_.front();
  for (const Candidate& c : list_) {
    const double more = c.probability - there(c.id);
    if (more <= 0) continue;
    chosen = c;
    cumulative += more;
    if (number * rest < cumulative) break;
  }
  return chosen;
}

}  // namespace rbee::engine
