#pragma once
// Finds added tokens in a text before all other steps: "<|im_end|>", "<s>", runs of spaces.

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/text/byte_trie.h"
#include "rbee/text/tokenizer.h"

namespace rbee::text {

struct AddedToken {
  std::string content;
  TokenId id = 0;
  bool special = false;      // hidden by decode(), and not found if parse_special is off
  bool single_word = false;  // not inside a word
  bool lstrip = false;       // includes the white space on its left
  bool rstrip = false;       // and on its right
  bool normalized = false;   // searched for after normalisation
};

// A part of a text: an added token, or text between them.
struct Section {
  std::string_view text;
  TokenId id = -1;  // -1: text
};

// Finds tokens from left to right, at each place the longest one.
class AddedTokenFinder {
 public:
  struct Key {
    std::string text;  // not empty; normalised if the token is
    const AddedToken* token;
  };
  explicit AddedTokenFinder(std::vector<Key> keys = {});

  // Appends the sections of `text`.
  void find(std::string_view text, bool parse_special, std::vector<Section>& out) const;
  bool empty() const { return keys_.empty(); }

 private:
  std::vector<Key> keys_;
  ByteTrie trie_;  // value: index in keys_
};

}  // namespace rbee::text
