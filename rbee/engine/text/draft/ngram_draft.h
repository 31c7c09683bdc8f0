#pragma once
// Drafts what comes next from the text itself: what followed its last tokens the last time they
// came ("prompt lookup", Saxena 2023). Draft tokens may be wrong; the model decides.

#include <cstdint>
#include <span>
#include <vector>

namespace rbee::engine {

// At most `most` tokens; none when the last two tokens are new. history: the text so far.
std::vector<int32_t> ngram_draft(std::span<const int32_t> history, int64_t most);

// How many draft tokens to propose: more while they are right, fewer and then none for a while when
// they are wrong.
class DraftLength {
 public:
  explicit DraftLength(int64_t most) : most_(most), length_(most) {}

  int64_t most() const { return most_; }
  // Once for each token that is to come; 0 = propose none.
  int64_t next();
  // Of a draft: how many tokens it had, and how many of them came.
  void learn(int64_t drafted, int64_t accepted);

 private:
  int64_t most_;
  int64_t length_;
  int64_t pause_ = 0;       // tokens for which none is drafted
  int64_t next_pause_ = 1;  // after the next draft that is all wrong
};

}  // namespace rbee::engine
