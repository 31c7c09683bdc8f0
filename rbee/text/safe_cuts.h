#pragma once
// Finds where a long word can be cut without changing its tokens. SentencePiece models see a whole
// text as one word. Most merges stop at the mark of a space; a text cut there is faster to encode,
// and its parts can be cached.

#include <cstdint>
#include <string_view>
#include <unordered_set>

namespace rbee::text {

class SafeCuts {
 public:
  // Call this for every token that a merge can make, before the first use.
  void add_token(std::string_view token);
  // End of the first part of `text` (not empty) that no token can straddle: text.size() or a
  // border before a space mark whose pair with the character before it is in no token.
  size_t first_part(std::string_view text) const;

 private:
  std::unordered_set<char32_t> before_mark_;  // characters with a mark after them inside a token
};

}  // namespace rbee::text
