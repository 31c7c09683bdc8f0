#pragma once
// Tokens that may be drawn next, and the samplers that cut them down. A probability is always the
// softmax over the candidates left at that time.

#include <cstdint>
#include <span>
#include <vector>

#include "rbee/engine/text/draft/draft_token.h"

namespace rbee::engine {

struct Candidate {
  float logit;
  int32_t id;
  float probability;  // set by weigh() or softmax()
};

// The order of a sorted list.
inline bool likelier(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

// After any cut the list is sorted, the likeliest first; before, it is in the order of the ids. At
// least one candidate stays.
class Candidates {
 public:
  // All of a row, or its k likeliest, without NaN and -infinity.
  void take_all(std::span<const float> logits);
  void take_top_k(std::span<const float> logits, size_t k);
  // The caller fills this list, sorted.
  std::vector<Candidate>& take_sorted();
  const std::vector<Candidate>& list() const { return list_; }
  size_t size() const { return list_.size(); }

  void cut_top_k(size_t k);  // at least one stays
  // Keeps the likeliest until their mass reaches p; the crossing token stays.
  void cut_top_p(float p);
  // Keeps candidates of at least p times the largest probability.
  void cut_min_p(float p);
  // The smallest logit that cut_min_p() keeps if `largest` is the largest logit.
  static float least_logit(float largest, float p);
  // Keeps candidates in the order of | -log probability - entropy |, until their mass exceeds p.
  void cut_typical_p(float p);
  // Keeps logits within n standard deviations of the largest.
  void cut_top_n_sigma(float n);
  // Drops the candidates of at least the threshold, except the least likely of them.
  void cut_xtc(float threshold);
  // Mirostat's cuts, see mirostat.h.
  void cut_surprise(float bits);

  // Logits become (logit - largest) / temperature.
  void divide(float temperature);
  // -sum p log p, in nats.
  double entropy();
  // Probabilities relative to the likeliest; returns their sum.
  double weigh();
  void softmax();
  // The token at `number` (0 to 1) of the mass, with its probability. The likeliest come first; in
  // an uncut list, the candidates after the first kDrawFront come in the order of their ids, as in
  // DrawArgs. The list does not change.
  Candidate draw(double number);
  // A draw from the same distribution that prefers a draft token drawn from another one. It takes
  // the draft if accept * (probability there) is below the probability here; else it draws from the
  // tokens that are more probable here than there (Leviathan et al. 2023, algorithm 1). accept,
  // number: uniform in [0, 1), independent of each other and of the draft token.
  Candidate draw(const DraftToken& draft, double accept, double number);

 private:
  void sort();
  float largest() const;
  size_t crossing_by_id(double wanted);
  size_t index_of(int32_t id) const;

  std::vector<Candidate> list_;
  bool sorted_ = false;
  std::vector<Candidate> front_;  // scratch memory of draw()
};

}  // namespace rbee::engine
