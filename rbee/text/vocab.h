#pragma once
// The table token text <-> id: one block of text and an open hash table. A quarter of a million
// tokens load in some milliseconds.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/text/tokenizer.h"

namespace rbee::text {

class Vocab {
 public:
  // Adds `text` under `id`; false if `id` has a text already. Ids may come in any order and leave
  // gaps; memory grows with the highest one. find() gives the first of two equal texts.
  bool add(std::string_view text, TokenId id);
  void reserve(size_t tokens, size_t bytes);

  std::optional<TokenId> find(std::string_view text) const;
  // "" for an id that has no text.
  std::string_view text(TokenId id) const;
  bool has(TokenId id) const;
  int64_t size() const { return static_cast<int64_t>(spans_.size()); }  // highest id + 1

 private:
  struct Span {
    uint64_t begin : 40;
    uint64_t length : 23;
    uint64_t used : 1;
  };
  // The hash's upper half tells nearly all different texts apart without reading them.
  struct Slot {
    uint32_t tag;
    TokenId id;  // -1: free
  };
  std::string_view view(Span span) const {
    return std::string_view(bytes_).substr(span.begin, span.length);
  }
  void insert(uint64_t hash, TokenId id);

  std::string bytes_;
  std::vector<Span> spans_;  // by id
  std::vector<Slot> table_;  // a power of two
  size_t filled_ = 0;
};

// Hashes bytes, well enough for tables, but without defence against chosen keys.
uint64_t hash_bytes(std::string_view bytes);

}  // namespace rbee::text
