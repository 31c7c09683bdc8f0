#pragma once
// The pre-tokenizers that GGUF files name in tokenizer.ggml.pre.

#include <optional>
#include <string_view>
#include <vector>

namespace rbee::text {

struct GgufPre {
  std::vector<std::string_view> patterns;  // applied one after the other, matches apart from gaps
  bool nfc = false;                        // the family's tokenizer.json normalises so
  bool ignore_merges = false;
  bool add_bos = false;  // where the file does not say
  bool plain_text =
      false;  // tokens are text with SentencePiece's mark for spaces, not byte letters
};

// Without a name come the rules of "default", with a warning in the log. Throws unsupported for a
// name that is not known: other cuts give other ids, and a model that answers worse.
const GgufPre& gguf_pre(std::string_view name);

// A name whose rules these are, add_bos apart; nothing when none fits.
std::optional<std::string_view> gguf_pre_name(const GgufPre& pre);

// GPT-2's pattern, which ByteLevel pre-tokenizers have built in.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

}  // namespace rbee::text
