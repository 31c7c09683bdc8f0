#pragma once
// WordPiece (Devlin et al. 2019, BERT): from the left, takes the longest token each time. If no
// token fits a part of the word, the whole word is one unknown token.

#include <string>
#include <string_view>
#include <vector>

#include "rbee/text/model.h"
#include "rbee/text/vocab.h"

namespace rbee::text {

struct WordPieceOptions {
  TokenId unk = 0;
  std::string continuing_subword_prefix = "##";
  int64_t max_characters = 100;  // longer words are unknown
};

class WordPiece final : public Model {
 public:
  // `vocab` must outlive the model.
  WordPiece(const Vocab& vocab, WordPieceOptions options)
      : vocab_(&vocab), options_(std::move(options)) {}

  void tokenize(std::string_view word, TokenizeScratch& scratch,
                std::vector<TokenId>& out) const override;

 private:
  const Vocab* vocab_;
  WordPieceOptions options_;
};

}  // namespace rbee::text
