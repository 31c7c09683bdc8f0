#pragma once
// SentencePiece's BPE (Kudo and Richardson 2018, section 3.1): two neighbours merge if their joined
// text is a token, the token with the highest score first. There is no list of merges. GGUF files
// of Llama 2, Mistral and Gemma have this form.

#include <array>
#include <optional>
#include <vector>

#include "rbee/text/model.h"
#include "rbee/text/safe_cuts.h"
#include "rbee/text/vocab.h"

namespace rbee::text {

class Spm final : public Model {
 public:
  // scores: one for each id. mergeable: whether a merge may make this id. unk: the token of
  // characters without a token, if the vocabulary has no "<0x..>" tokens. `vocab` must outlive the
  // model.
  Spm(const Vocab& vocab, const std::vector<float>& scores, const std::vector<bool>& mergeable,
      std::optional<TokenId> unk);

  void tokenize(std::string_view word, TokenizeScratch& scratch,
                std::vector<TokenId>& out) const override;

 private:
  // The token that `text` may become by merging, or -1.
  TokenId token_of(std::string_view text) const {
    const auto id = vocab_->find(text);
    return id && rank_[static_cast<size_t>(*id)] != Merge::kNone ? *id : TokenId{-1};
  }
  void tokenize_part(std::string_view part, TokenizeScratch& scratch,
                     std::vector<TokenId>& out) const;

  const Vocab* vocab_;
  std::vector<uint32_t> rank_;  // by id: place of its score, best = 0; Merge::kNone: not mergeable
  std::array<TokenId, 256> byte_ids_{};   // -1: none
  std::array<TokenId, 128> ascii_ids_{};  // of characters; -1: none
  std::optional<TokenId> unk_;
  SafeCuts cuts_;
};

}  // namespace rbee::text
