#pragma once
// Where a long word may be cut without changing its tokens. SentencePiece models see a whole text
// as one word; most merges stop at the mark of a space, and a text cut there is faster and
// cacheable.

#include <cstdint>
#include <string_view>
#include <unordered_set>

namespace rbee::text {

class SafeCuts {
 public:
  // Every token that a merge can make must be told before the first use.
  void add_token(std::string_view token);
  // End of the first part of `text` (not empty) that no token can straddle: text.size() or a
  // border before a space mark whose pair with the character before it is in no token.
  size_t first_part(std::string_view text) const;

 private:
  std::unordered_set<char32_t> before_mark_;  // characters with a mark after them inside a token
};

}  // namespace rbee::text
