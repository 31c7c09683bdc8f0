#pragma once
// The vocabulary of a real GGUF file, for tests that need RBEE_MODEL_DIR.

#include <filesystem>

#include "rbee/text/tokenizer.h"

namespace rbee::text::testing {

GgufVocab read_gguf_vocab(const std::filesystem::path& path);

}  // namespace rbee::text::testing
