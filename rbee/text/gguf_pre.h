#pragma once
// The pre-tokenizers that GGUF files name in tokenizer.ggml.pre.

#include <optional>
#include <string_view>
#include <vector>

namespace rbee::text {

struct GgufPre {
  std::vector<std::string_view>
      patterns;      // applied one after the other; matches and the gaps between them become words
  bool nfc = false;  // the family's tokenizer.json normalises so
  bool ignore_merges = false;
  bool add_bos = false;  // if the file does not say
  bool plain_text =
      false;  // tokens are text with SentencePiece's mark for spaces, not byte letters
};

// Without a name it gives the rules of "default" and logs a warning. Throws unsupported for an
// unknown name: wrong splits give wrong ids, and the model answers worse.
const GgufPre& gguf_pre(std::string_view name);

// A name with these rules, apart from add_bos; nothing if none fits.
std::optional<std::string_view> gguf_pre_name(const GgufPre& pre);

// GPT-2's pattern, which ByteLevel pre-tokenizers have built in.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

}  // namespace rbee::text
