#pragma once
// How a decoder that ranks is asked about a query and a document.

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
  // form: a text with {query}, then {document}, and perhaps {instruction} before these. Throws
  // unsupported for another. The line that the first of these is in, and what stands between them,
  // is read together with what takes their places, where special tokens are text.
  RerankPrompt(std::string_view form, const text::Tokenizer& tokenizer);

  bool takes_instruction() const { return takes_instruction_; }
  // most: tokens; of a longer prompt the document is cut. Throws invalid_argument where not even
  // the rest fits.
  std::vector<int32_t> encode(const TextPair& pair, const text::Tokenizer& tokenizer,
                              int64_t most) const;

 private:
  std::string fill(const TextPair& pair) const;

  std::vector<int32_t> before_, after_;
  std::string body_;  // with the names in braces
  bool takes_instruction_ = false;
};

}  // namespace rbee::engine
