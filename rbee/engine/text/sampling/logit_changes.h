#pragma once
// What changes single logits before tokens are chosen: biases and bans, the penalties of what the
// text has already, and DRY. Each is a growing function of the token's logit.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rbee/engine/api/sampling.h"
#include "rbee/engine/text/sampling/dry.h"

namespace rbee::engine {

// The parts of a request's sampling that are in tokens of its model.
struct TokenRules {
  std::vector<std::pair<int32_t, float>> biases;  // an id may come again: they add up
  std::vector<int32_t> end_tokens;                // banned by ignore_eos and below min_tokens
  std::vector<int32_t> stop_tokens = {};          // banned below min_tokens
  std::vector<std::vector<int32_t>> bad_words;    // none is empty
  int64_t prompt_tokens = 0;
  std::function<std::string(int32_t)> piece;  // text of a token, for DRY's breakers
};

class LogitChanges {
 public:
  explicit LogitChanges(const SamplingParams& params);
  void set_rules(TokenRules rules);

  struct Change {
    int32_t id;
    float bias = 0;         // -infinity: banned
    bool repeated = false;  // for the repetition penalty
    float count = 0;        // occurrences that the frequency and presence penalties count
    float subtract = 0;     // DRY's
  };
  // Sorted by id. history: the sequence so far, prompt included, oldest first.
  const std::vector<Change>& prepare(std::span<const int32_t> history);
  float apply(float logit, const Change& change) const;
  // About how many tokens change: more are rare among the likeliest of one row.
  int64_t expected() const;
  // Tokens that are banned to the text's end, none twice.
  std::span<const int32_t> lasting_bans() const;
  // Whether the last prepare() found these alone.
  bool are_lasting_bans() const;
  // Whether all that may change is bans and biases below 0: a token that is the likeliest and is
  // none of these stays the likeliest.
  bool only_lowers() const;

 private:
  bool has_penalties() const;
  void add_biases();
  void add_bans(std::span<const int32_t> history);
  void count_repeats(std::span<const int32_t> history);
  // An entry for each token of the text, with its occurrences.
  struct Tally {
    bool repeated, counts;  // which of the entry's parts
  };
  void add_tally(std::span<const int32_t> text, Tally tally);
  void merge();

  SamplingParams params_;
  TokenRules rules_;
  Dry dry_;
  bool penalties_on_, dry_on_;
  std::vector<int32_t> recent_;
  std::vector<Change> changes_;
};

}  // namespace rbee::engine
