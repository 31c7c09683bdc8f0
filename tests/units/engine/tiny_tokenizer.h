#pragma once
// A tokenizer.json of the size of the tiny models in tests/models/data.

#include <cstdint>
#include <string>

namespace rbee::engine {

inline constexpr int64_t kTinyVocab = 160;
inline constexpr const char* kTinyTokenizerConfig = R"({"bos_token": "<s>", "eos_token": "</s>"})";

// Printable ASCII, a space and pairs of letters; 0 begins a text, 1 ends it.
std::string tiny_tokenizer_json();

}  // namespace rbee::engine
