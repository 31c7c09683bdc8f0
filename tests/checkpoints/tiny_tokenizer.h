#pragma once
// A tokenizer.json as small as the models in tests/models/language/data.

#include <cstdint>
#include <string>
#include <vector>

namespace rbee::test {

inline constexpr int64_t kTinyVocab = 160;
inline constexpr const char* kTinyTokenizerConfig = R"({"bos_token": "<s>", "eos_token": "</s>"})";

// Printable ASCII, a space and pairs of letters. Token 0 begins a text, token 1 ends it. end: token
// 1's name; with any name but "</s>" it ends nothing. marks: further special tokens, the last ids;
// with them the vocabulary also has a line break.
std::string tiny_tokenizer_json(const std::string& end = "</s>",
                                const std::vector<std::string>& marks = {});

}  // namespace rbee::test
