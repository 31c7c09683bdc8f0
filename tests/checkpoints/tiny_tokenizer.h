#pragma once
// A tokenizer.json of the size of the tiny models in tests/models/language/data.

#include <cstdint>
#include <string>
#include <vector>

namespace rbee::test {

inline constexpr int64_t kTinyVocab = 160;
inline constexpr const char* kTinyTokenizerConfig = R"({"bos_token": "<s>", "eos_token": "</s>"})";

// Printable ASCII, a space and pairs of letters; 0 begins a text, 1 ends it. end: the name of token
// 1; under another name than "</s>" it ends nothing. marks: more special tokens, the last
// ones; with them comes a line break.
std::string tiny_tokenizer_json(const std::string& end = "</s>",
                                const std::vector<std::string>& marks = {});

}  // namespace rbee::test
