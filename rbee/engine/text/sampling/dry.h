#pragma once
// DRY: finds the tokens that would continue a repetition of the text's end, and its length.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "rbee/engine/api/sampling.h"

namespace rbee::engine {

class Dry {
 public:
  explicit Dry(const SamplingParams& params);

  bool on() const { return multiplier_ > 0 && last_n_ != 0; }
  // piece: the text of a token, to find breakers in. Without it there are no breakers.
  void set_piece(std::function<std::string(int32_t)> piece) { piece_ = std::move(piece); }

  struct Penalty {
    int32_t id;
    float subtract;  // from its logit
  };
  // Sorted by id. history: the sequence so far, at least as long as in the last call.
  const std::vector<Penalty>& penalties(std::span<const int32_t> history);

 private:
  void mark_breakers(std::span<const int32_t> history);
  void find_matches(std::span<const int32_t> window, std::span<const char> breaks);
  void keep_longest();
  float penalty(size_t length) const;

  float multiplier_, base_;
  size_t allowed_length_;
  int32_t last_n_;
  std::vector<std::string> breakers_;
  size_t longest_breaker_ = 0;  // bytes
  std::function<std::string(int32_t)> piece_;

  std::vector<char> breaks_;    // for each token: whether it is part of a breaker
  std::string tail_;            // the text's last bytes
  std::vector<size_t> owners_;  // the token of each byte in tail_
  std::vector<size_t> matches_;
  std::vector<Penalty> penalties_;
};

}  // namespace rbee::engine
