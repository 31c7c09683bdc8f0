#pragma once
// What turns one word of the pre-tokenizer into ids: byte pair encoding, unigram, WordPiece.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/text/merge_loop.h"
#include "rbee/text/tokenizer.h"

namespace rbee::text {

// Words met before in the same encode() and their ids: a table without chains, where a new word
// replaces the old one of its place. Words must stay where they are as long as the cache lives.
class WordCache {
 public:
  // True: `out` got the ids of `word`.
  bool append(std::string_view word, uint64_t hash, std::vector<TokenId>& out) const;
  // Remembers that `word` gave the ids from out[first] on.
  void store(std::string_view word, uint64_t hash, const std::vector<TokenId>& out, size_t first);

 private:
  static constexpr size_t kPlaces = 1 << 13;
  static constexpr size_t kMaxIds = 1 << 20;  // then it starts over
  struct Place {
    const char* word = nullptr;
    uint32_t length = 0;
    uint32_t first = 0, count = 0;  // in ids_
  };
  std::vector<Place> places_;
  std::vector<TokenId> ids_;
};

// Working memory of one encode().
struct Scratch {
  MergeBuffers merge;
  WordCache cache;
  bool use_cache = false;  // for long texts
};

class Model {
 public:
  virtual ~Model() = default;
  // Appends the ids of `word` (valid UTF-8, or any bytes for byte-level models; not empty).
  virtual void tokenize(std::string_view word, Scratch& scratch,
                        std::vector<TokenId>& out) const = 0;
};

// Text of the token that stands for one byte, "<0x0A>".
std::string byte_token(uint8_t byte);
// The byte of such a text, or -1.
int byte_of_token(std::string_view text);

}  // namespace rbee::text
