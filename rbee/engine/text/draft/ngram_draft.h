#pragma once
// Drafts from the text itself: the tokens that followed its last tokens when they last occurred
// ("prompt lookup", Saxena 2023). Draft tokens may be wrong; the model decides.

#include <cstdint>
#include <span>
#include <vector>

namespace rbee::engine {

// At most `most` tokens; none if the last two tokens have not occurred together before. history:
// the text so far.
std::vector<int32_t> ngram_draft(std::span<const int32_t> history, int64_t most);

// How many draft tokens to propose: more while they are accepted; fewer, then none for a while,
// when they are rejected.
class DraftLength {
 public:
  explicit DraftLength(int64_t most) : most_(most), length_(most) {}

  int64_t most() const { return most_; }
  // Call it once for each new token; 0 = propose none.
  int64_t next();
  // After a draft: how many tokens it had, and how many were accepted.
  void learn(int64_t drafted, int64_t accepted);

 private:
  int64_t most_;
  int64_t length_;
  int64_t pause_ = 0;       // tokens left without drafts
  int64_t next_pause_ = 1;  // pause after the next draft that is wholly rejected
};

}  // namespace rbee::engine
