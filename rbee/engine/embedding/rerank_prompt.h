#pragma once
// The prompt that asks a decoder to score a query and a document.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/engine/api/embedding.h"
#include "rbee/text/tokenizer.h"

namespace rbee::engine {

class RerankPrompt {
 public:
  // form: a text with {query}, then {document}, and perhaps {instruction} before both; throws
  // unsupported for another. The line of the first of these, and all between them, is tokenised
  // together with the texts that replace them; special tokens there are plain text.
  RerankPrompt(std::string_view form, const text::Tokenizer& tokenizer);

  bool takes_instruction() const { return takes_instruction_; }
  // most: tokens; cuts the document of a longer prompt. Throws invalid_argument if the rest alone
  // does not fit.
  std::vector<int32_t> encode(const TextPair& pair, const text::Tokenizer& tokenizer,
                              int64_t most) const;

 private:
  std::string fill(const TextPair& pair) const;

  std::vector<int32_t> before_, after_;
  std::string body_;  // with the names in braces
  bool takes_instruction_ = false;
};

}  // namespace rbee::engine
