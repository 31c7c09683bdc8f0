#pragma once
// The pre-tokenizers that GGUF files name in tokenizer.ggml.pre.

#include <string_view>
#include <vector>

namespace rbee::text {

struct GgufPre {
  std::vector<std::string_view> patterns;  // applied one after the other, matches apart from gaps
  bool nfc = false;                        // the family's tokenizer.json normalises so
  bool ignore_merges = false;
  bool add_bos = false;  // where the file does not say
};

// An unknown name gets the rules of "default", with a warning in the log.
const GgufPre& gguf_pre(std::string_view name);

}  // namespace rbee::text
