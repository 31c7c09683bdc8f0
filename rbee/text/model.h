#pragma once
// Models turn one word of the pre-tokenizer into ids: byte pair encoding, unigram, WordPiece.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/text/merge_loop.h"
#include "rbee/text/tokenizer.h"

namespace rbee::text {

// Caches words of the same encode() and their ids, in a table without chains: a new word replaces
// the old one in its slot. The cache keeps views: words must stay in memory as long as it lives.
class WordCache {
 public:
  // Appends the cached ids of `word` to `out`. False if it is not cached.
  bool append(std::string_view word, uint64_t hash, std::vector<TokenId>& out) const;
  // Caches the ids from out[first] on for `word`.
  void store(std::string_view word, uint64_t hash, const std::vector<TokenId>& out, size_t first);

 private:
  static constexpr size_t kPlaces = 1 << 13;
  static constexpr size_t kMaxIds = 1 << 20;  // the cache is emptied at this size
  struct Place {
    const char* word = nullptr;
    uint32_t length = 0;
    uint32_t first = 0, count = 0;  // in ids_
  };
  std::vector<Place> places_;
  std::vector<TokenId> ids_;
};

// Working memory of one encode().
struct TokenizeScratch {
  MergeBuffers merge;
  WordCache cache;
  bool use_cache = false;  // for long texts
};

class Model {
 public:
  virtual ~Model() = default;
  // Appends the ids of `word` (valid UTF-8, or any bytes for byte-level models; not empty).
  virtual void tokenize(std::string_view word, TokenizeScratch& scratch,
                        std::vector<TokenId>& out) const = 0;
};

// The text of the token of one byte, "<0x0A>".
std::string byte_token(uint8_t byte);
// The byte of such a token's text, or -1.
int byte_of_token(std::string_view text);

}  // namespace rbee::text
