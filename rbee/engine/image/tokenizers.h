#pragma once
// The tokenizers of text encoders.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rbee/models/image/image_model.h"
#include "rbee/text/tokenizer.h"

namespace rbee::engine {

// A text encoder's tokenizer and the ids around its prompts.
struct PromptTokenizer {
  std::unique_ptr<text::Tokenizer> tokenizer;
  std::optional<text::TokenId> start;
  text::TokenId end = 0;
  text::TokenId pad = 0;
  // Cut texts off at the encoder's length; else read the rest in further calls.
  bool single = false;
  // Of a language model, whose texts are not padded: `start`, the text of `opens` with the prompt,
  // then the ids of `closes`. Empty: of another encoder.
  std::string opens = {};
  std::vector<text::TokenId> closes = {};
};

// `beside`: a folder with the tokenizer for encoders that have none; T5's is in the folder of that
// name with "_t5" appended. Throws not_found with a remedy if there is none, and what reading
// its files throws.
PromptTokenizer load_tokenizer(const models::TokenizerFiles& own,
                               const std::filesystem::path& beside);

}  // namespace rbee::engine
