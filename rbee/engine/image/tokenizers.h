#pragma once
// The tokenizers of text encoders.

#include <filesystem>
#include <memory>
#include <optional>

#include "rbee/models/image/image_model.h"
#include "rbee/text/tokenizer.h"

namespace rbee::engine {

// A text encoder's tokenizer and the ids around its prompts.
struct PromptTokenizer {
  std::unique_ptr<text::Tokenizer> tokenizer;
  std::optional<text::TokenId> start;
  text::TokenId end = 0;
  text::TokenId pad = 0;
  // What is beyond the encoder's length is cut off; else it is read in further calls.
  bool single = false;
};

// `beside`: a folder with CLIP's tokenizer for encoders that came without one; T5's is in the
// folder of that name with "_t5" behind it. Throws not_found with a remedy when there is none, and
// what the readers of its files throw.
PromptTokenizer load_tokenizer(const models::TokenizerFiles& own,
                               const std::filesystem::path& beside);

}  // namespace rbee::engine
