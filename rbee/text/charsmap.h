#pragma once
// SentencePiece's compiled normalizer ("precompiled_charsmap"): a double-array trie (Aoe 1989, as
// the library Darts-clone lays it out) from character sequences to replacements.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rbee::text {

class Charsmap {
 public:
  // blob: bytes of the trie (u32), the trie's u32 units, then replacements that end in NUL; all
  // little-endian. Throws invalid_argument; its message begins with `where`.
  Charsmap(std::string_view blob, std::string_view where);

  // Normalises `text` (valid UTF-8): replaces each grapheme cluster below six bytes, else each
  // character, by the replacement of the shortest sequence with which it starts. The result is
  // valid UTF-8 for any map.
  std::string apply(std::string_view text) const;

 private:
  std::optional<std::string_view> replacement(std::string_view text) const;
  void append_cluster(std::string_view cluster, std::string& out) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace rbee::text
