#pragma once
// Tokens that may be drawn next, and the samplers that cut them down. Probabilities are always
// those of the softmax over what is left at the time.

#include <cstdint>
#include <span>
#include <vector>

#include "rbee/engine/text/draft/draft_token.h"

namespace rbee::engine {

struct Candidate {
  float logit;
  int32_t id;
  float probability;  // by the last call of weigh() or softmax()
};

// The order of a sorted list.
inline bool likelier(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

// Any cut leaves the list sorted, the likeliest first; a list that nothing has cut is in the order
// of the ids. At least one candidate stays.
class Candidates {
 public:
  // NaN and -infinity are left out. Of a row: all, or the k likeliest.
  void take_all(std::span<const float> logits);
  void take_top_k(std::span<const float> logits, size_t k);
  // Sorted ones, which the caller writes.
  std::vector<Candidate>& take_sorted();
  const std::vector<Candidate>& list() const { return list_; }
  size_t size() const { return list_.size(); }

  void cut_top_k(size_t k);  // one stays at least
  // The likeliest until their mass reaches p; the crossing token stays.
  void cut_top_p(float p);
  // What has at least p times the probability of the likeliest.
  void cut_min_p(float p);
  // The least logit that cut_min_p() keeps below a largest one.
  static float least_logit(float largest, float p);
  // In order of | -log probability - entropy |, until their mass exceeds p.
  void cut_typical_p(float p);
  // What is within n standard deviations of the largest logit.
  void cut_top_n_sigma(float n);
  // Without those of at least the threshold, but with the least likely of these.
  void cut_xtc(float threshold);
  // Mirostat's cuts, see mirostat.h.
  void cut_surprise(float bits);

  // Logits become (logit - largest) / temperature.
  void divide(float temperature);
  // -sum p log p, in nats.
  double entropy();
  // Probabilities up to a factor, that of the likeliest being one; returns their sum.
  double weigh();
  void softmax();
  // The token at `number` (0 to 1) of the mass, with its probability: the likeliest come first; of
  // a list that nothing has cut those behind kDrawFront in the order of their ids, as DrawArgs has
  // it. The list stays as it is.
  Candidate draw(double number);
  // A draw that follows the same distribution and prefers a draft token that was drawn from another
  // one: it is taken where accept * its probability there is below that here, else a token is drawn
  // from what is more probable here than there (Leviathan et al. 2023, algorithm 1). accept,
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
