#pragma once
// Counts an answer's reasoning tokens and ends the reasoning when its budget is spent: the engine
// then writes the end mark in the model's place, and the answer follows.

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
  // options: of the answer's parser; its format must have reasoning. budget: most reasoning tokens,
  // 0 or more; absent: no limit. It lets an unfinished character end first. The tokenizer must
  // outlive this.
  Reasoning(const text::Tokenizer& tokenizer, const text::OutputParserOptions& options,
            std::optional<int32_t> budget);

  // Takes the answer's next token. If it is not forced(), the forced tokens are dropped.
  void take(int32_t id);
  // The token that must come next; absent: any may.
  std::optional<int32_t> forced() const;
  // Tokens between the reasoning marks so far.
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
  bool ended_ = false;           // by the budget
  std::string tail_;             // last bytes of the text ...
  std::vector<Piece> pieces_;    // ... and the tokens they came from
  std::vector<int32_t> forced_;  // tokens of the end mark
  size_t next_ = 0;              // index in forced_; its size: none left
};

}  // namespace rbee::engine
