#pragma once
// Chooses the next token from logits. Order: biases, bans and masks; penalties; DRY; the other
// samplers in the order of SamplingParams::samplers; a draw. Temperature 0 takes the likeliest
// token after penalties and DRY. Each request has its own sampler, with its random state. A copy
// continues as the original would.
//
// A row of logits is long, and nearly none of it can be drawn. So the sampler can also work from
// the row's largest logits alone, if it can prove that the whole row would give the same token.
// Changes grow with the logit, so the smallest known logit bounds the changed value of every unseen
// one. Top-k and min-p need no further logits. Top-p, and a draw from all tokens, need the sum over
// the row, which is known within an error. After the first cut the list is the same as with the
// whole row. If the proof fails, the sampler asks for the row.
//
// Under a mask, the row means its allowed tokens; the allowed ones among the top logits are the
// first of these.

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "rbee/engine/api/sampling.h"
#include "rbee/engine/text/sampling/candidates.h"
#include "rbee/engine/text/sampling/logit_changes.h"
#include "rbee/engine/text/sampling/mirostat.h"
#include "rbee/engine/text/sampling/token_mask.h"
#include "rbee/engine/text/step/top_logit_rows.h"

namespace rbee::engine {

// The largest logits of a row, as rbee/ops/top_k.h finds them.
struct TopLogits {
  std::span<const float> values;  // largest first; of equal ones the lower id first
  std::span<const int32_t> ids;
  float sum = 0;      // over the row of exp((x - largest) * scale); if wanted
  int64_t vocab = 0;  // length of the row
  // A token that the device drew from the whole row with this random number, as describe_draws()
  // described: see DrawArgs.
  struct Drawn {
    int32_t id;
    float number;
  };
  std::optional<Drawn> drawn = {};
};

class TokenSampler {
 public:
  // `seed` decides every draw: the same logits and history give the same tokens.
  TokenSampler(const SamplingParams& params, uint64_t seed);
  // Call it before the first token; without it there are no rules.
  void set_rules(TokenRules rules) { changes_.set_rules(std::move(rules)); }

  // What to find in the next row. At temperature 0 the likeliest token is enough, even if it may be
  // banned (ignore_eos, min_tokens, bad_words, biases below 0), until it is.
  struct Wanted {
    int64_t top_logits = 0;  // largest logits that nearly always suffice; 0: needs the row
    bool sum = false;        // with TopLogits::sum
  };
  Wanted wanted(int64_t vocab) const;
  // The scale of TopLogits::sum: 1 / temperature if the temperature comes before top-p or the draw,
  // else 1.
  float scale() const;
  // Whether a device can draw the next tokens: only temperature, top-k, top-p and min-p apply, and
  // the kDrawnTopLogits largest logits nearly always suffice. describe_draws() then describes the
  // draws.
  bool can_draw_on_device(int64_t vocab) const;
  void describe_draws(DeviceDraws& to) const;
  // Announces drawn_among() and confidence(): if no sampler cuts, they need the whole row.
  void keep_distribution() { keeps_distribution_ = true; }

  // Only these tokens may come next, until the next call; the caller keeps the bits. At least one
  // must be allowed. Before the first call all are.
  void allow(const TokenMask& mask) { mask_ = mask; }

  // logits: (vocab), changed in place. history: the sequence so far, prompt included, oldest first.
  // Throws internal if no logit is finite. draft: proposed for this token; null: none. If it was
  // drawn, the sampler takes or replaces it so that the token's distribution does not change. If it
  // was not, it has no effect.
  int32_t sample(std::span<float> logits, std::span<const int32_t> history,
                 const DraftToken* draft = nullptr);
  // The token that sample() above would give for the whole row. Absent if the top logits do not
  // decide it: sample the row then.
  std::optional<int32_t> sample(const TopLogits& top_logits, std::span<const int32_t> history,
                                const DraftToken* draft = nullptr);

  // Continues from the state of `other`, of a request with the same parameters, with its own random
  // numbers. Keeps its own mask.
  void follow(const TokenSampler& other);
  // The distribution of the last sample(), as DraftToken::among; empty at temperature 0. Needs
  // keep_distribution().
  std::vector<TokenProbability> drawn_among() const;
  // The largest probability of the last sample(). At temperature 0 it is the token's probability
  // among the largest logits, which are many only after keep_distribution().
  float confidence();

 private:
  // Bounds of the sum of exp((x - largest) * scale) over a row.
  struct MassBounds {
    double low, high;
  };
  // The top logits after changes; candidates_ holds them.
  struct Changed {
    bool complete;   // no other token can come
    size_t certain;  // leading candidates that are surely the first of the whole row, in order
    MassBounds mass;
  };

  bool likeliest_will_do() const;
  bool cuts(SamplerKind kind) const;
  size_t first_cut(int64_t vocab) const;
  int64_t cut_room() const;
  float temperature();
  double peek();
  double uniform();
  bool draws_from_all(size_t cut) const;
  int32_t draw(int64_t vocab, const DraftToken* draft);
  void run(size_t from);
  MassBounds bound_mass(const TopLogits& top_logits) const;
  Changed change_top_logits(const TopLogits& top_logits, std::span<const int32_t> history);
  bool take_top_logits(size_t cut, const Changed& changed);
  std::optional<int32_t> likeliest_unchanged(const TopLogits& top_logits,
                                             std::span<const int32_t> history);
  std::optional<int32_t> draw_from(const TopLogits& top_logits, const Changed& changed,
                                   const DraftToken* draft);
  std::optional<int32_t> draw_top_logit(const MassBounds& mass);
  std::optional<int32_t> take_drawn(const TopLogits& top_logits);
  bool cut_top_logits(size_t cut, const Changed& changed);
  bool cut_top_logits_top_p(const MassBounds& mass);

  SamplingParams params_;
  TokenMask mask_;
  LogitChanges changes_;
  Mirostat mirostat_;
  std::mt19937_64 random_;
  std::optional<double> next_;  // a random number that peek() has taken but nothing has used
  bool keeps_distribution_ = false;
  bool lowered_likeliest_ = false;  // it happened once, when only the likeliest was wanted
  int32_t wide_draws_ = 0;          // how many of the next draws ask for many top logits
  std::vector<SamplerKind> chain_;  // active samplers, without penalties and DRY
  Candidates candidates_;
};

// Index of the largest value; the first of equals. NaN is never chosen. -1 when all are NaN.
int32_t argmax(std::span<const float> values);

}  // namespace rbee::engine
