#pragma once
// The reasoning of an answer, counted in tokens and ended where its budget is spent: the engine
// then says the mark that ends it in the model's place, and the answer follows.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/text/output/output_parser.h"
#include "rbee/text/tokenizer.h"

namespace rbee::engine {

class Reasoning {
 public:
  // options: of the answer's parser; the format has reasoning. budget: tokens at most, 0 or more;
  // absent: no limit. A character that has begun is finished first. The tokenizer outlives this.
  Reasoning(const text::Tokenizer& tokenizer, const text::OutputParserOptions& options,
            std::optional<int32_t> budget);

  // The next token of the answer; another one than forced() takes that back.
  void take(int32_t id);
  // The token that has to come next; absent: any may.
  std::optional<int32_t> forced() const;
  // Tokens between the marks so far.
  int32_t tokens() const { return tokens_; }

 private:
  struct Piece {
    size_t bytes;
    bool counted;
  };

  void force_end();
  bool spent() const;
  void remember(std::string_view piece, bool counted);
  int32_t counted_of_mark() const;
  std::string ending() const;

  const text::Tokenizer& tokenizer_;
  const text::OutputFormat format_;
  const std::optional<int32_t> budget_;
  text::OutputParser parser_;
  int32_t tokens_ = 0;
  bool ended_ = false;           // by its budget
  std::string tail_;             // the last bytes of the text ...
  std::vector<Piece> pieces_;    // ... and the tokens that they are of
  std::vector<int32_t> forced_;  // that end it
  size_t next_ = 0;              // of forced_; its size: none
};

}  // namespace rbee::engine
