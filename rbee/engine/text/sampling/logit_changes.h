#pragma once
// Changes to single logits before a token is chosen: biases, bans, repetition penalties and DRY.
// Each change is a growing function of the logit.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rbee/engine/api/sampling.h"
#include "rbee/engine/text/sampling/dry.h"

namespace rbee::engine {

// A request's rules, in tokens of its model.
struct TokenRules {
  std::vector<std::pair<int32_t, float>> biases;  // an id may repeat: its biases add up
  std::vector<int32_t> end_tokens;                // banned by ignore_eos, and until min_tokens
  std::vector<int32_t> stop_tokens = {};          // banned until min_tokens
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
    bool repeated = false;  // the repetition penalty applies
    float count = 0;        // occurrences, for the frequency and presence penalties
    float subtract = 0;     // DRY's
  };
  // Sorted by id. history: the sequence so far, prompt included, oldest first.
  const std::vector<Change>& prepare(std::span<const int32_t> history);
  float apply(float logit, const Change& change) const;
  // Roughly how many tokens change. More than that are rarely among a row's largest logits.
  int64_t expected() const;
  // Tokens banned for the whole text, without duplicates.
  std::span<const int32_t> lasting_bans() const;
  // Whether the last prepare() found only these.
  bool are_lasting_bans() const;
  // Whether only bans and negative biases can occur: then the likeliest token stays the likeliest,
  // unless it is banned or biased itself.
  bool only_lowers() const;

 private:
  bool has_penalties() const;
  void add_biases();
  void add_bans(std::span<const int32_t> history);
  void count_repeats(std::span<const int32_t> history);
  // Adds an entry for each token of the text, with its occurrences.
  struct Tally {
    bool repeated, counts;  // which parts of the entry it sets
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
