#pragma once
// Chooses the next token from logits. Order: biases, bans and masks; penalties; DRY; then the
// samplers that cut and the temperature, as SamplingParams::samplers says; a draw. Temperature 0 is
// the likeliest token after penalties and DRY. One sampler per request: it owns the request's
// random state. A copy goes on as the original would.
//
// A row of logits is long and nearly all of it cannot be drawn. So the sampler also works from the
// row's largest logits alone, and proves each time that the whole row would give the same token:
// changes grow with the logit, so that those of logits it has not seen are bounded by the least it
// has; top-k and min-p look no further than that; and top-p, or a draw from all tokens, needs the
// sum over the row, which is known within an error. What follows the first cut sees the same list.
// Where the proof fails it asks for the row.
//
// Under a mask the row is what the mask allows: the top logits that it allows are the first of
// that.

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
  float sum = 0;      // over the row of exp((x - largest) * scale); where wanted
  int64_t vocab = 0;  // length of the row
  // What a device drew from the whole row by this number, as tell_draws() told: see DrawArgs.
  struct Drawn {
    int32_t id;
    float number;
  };
  std::optional<Drawn> drawn = {};
};

class Sampler {
 public:
  // `seed` decides every draw: the same logits and history give the same tokens.
  Sampler(const SamplingParams& params, uint64_t seed);
  // Before the first token; without it there are no rules.
  void set_rules(TokenRules rules) { changes_.set_rules(std::move(rules)); }

  // What to find of the next row. At temperature 0 the likeliest alone, also where it may be banned
  // (ignore_eos, min_tokens, bad_words, biases below 0), until it is.
  struct Wanted {
    int64_t top_logits = 0;  // how many of the largest will nearly always do; 0: only the row will
    bool sum = false;        // with TopLogits::sum
  };
  Wanted wanted(int64_t vocab) const;
  // The scale of TopLogits::sum: 1 / temperature where that comes before top-p or the draw, else 1.
  float scale() const;
  // Whether tell_draws() tells what the next draws will nearly always be: of the kDrawnTopLogits
  // largest logits, by a temperature and top-k, top-p and min-p alone.
  bool can_draw_on_device(int64_t vocab) const;
  void tell_draws(DeviceDraws& to) const;
  // drawn_among() and confidence() will be asked for: where nothing cuts, only the row will do.
  void keep_distribution() { keeps_distribution_ = true; }

  // Only these tokens may come next, until it is called again; the bits must stay. At least one is
  // allowed. Without a call all are.
  void allow(const TokenMask& mask) { mask_ = mask; }

  // logits: (vocab), changed in place. history: the sequence so far, prompt included, oldest
  // first. Throws internal when no logit is finite.
  // draft: proposed for this token; null: none. One that was drawn is taken or replaced so that the
  // token's distribution stays what it is without. One that was not changes nothing.
  int32_t sample(std::span<float> logits, std::span<const int32_t> history,
                 const DraftToken* draft = nullptr);
  // The token that sample() above gives for the whole row. Absent when the top logits do not decide
  // it: sample the row then.
  std::optional<int32_t> sample(const TopLogits& top_logits, std::span<const int32_t> history,
                                const DraftToken* draft = nullptr);

  // Goes on where `other`, of a request with the same parameters, is, with its own random numbers.
  // A mask stays as it is.
  void follow(const Sampler& other);
  // Of the last sample(): what the token was drawn from, as DraftToken::among; empty at temperature
  // 0. After keep_distribution() only.
  std::vector<TokenProbability> drawn_among() const;
  // Of the last sample(): the largest probability there was. At temperature 0 that of the token
  // among the largest logits, of which there are many after keep_distribution() alone.
  float confidence();

 private:
  // Of the weights exp((x - largest) * scale) over a row.
  struct MassBounds {
    double low, high;
  };
  // The top logits after changes, which candidates_ holds.
  struct Changed {
    bool complete;   // no other token may come
    size_t certain;  // in front: the first of the whole row, in the row's order
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
  std::optional<double> next_;  // a number of random_'s that was looked at and not used
  bool keeps_distribution_ = false;
  bool lowered_likeliest_ = false;  // once, and it was all that was asked for
  int32_t wide_draws_ = 0;          // to come, for which many top logits are asked for
  std::vector<SamplerKind> chain_;  // those that do something, without penalties and DRY
  Candidates candidates_;
};

// Index of the largest value; the first of equals. NaN is never chosen. -1 when all are NaN.
int32_t argmax(std::span<const float> values);

}  // namespace rbee::engine
