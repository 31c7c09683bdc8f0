#pragma once
// The unigram language model (Kudo 2018, section 3.2): the tokens of a word are the path of highest
// summed log probability, found by Viterbi's algorithm.

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "rbee/text/byte_trie.h"
#include "rbee/text/model.h"
#include "rbee/text/vocab.h"

namespace rbee::text {

class Unigram final : public Model {
 public:
  // scores: log probability of each id. usable: whether text may become this id. unk: the token of
  // characters without a token; neighbours share one. byte_fallback: such characters become
  // "<0x..>" tokens if the vocabulary has them. `vocab` must outlive the model.
  Unigram(const Vocab& vocab, std::vector<double> scores, const std::vector<bool>& usable,
          std::optional<TokenId> unk, bool byte_fallback);

  // Throws invalid_argument if a character is unknown and there is no unknown token.
  void tokenize(std::string_view word, TokenizeScratch& scratch,
                std::vector<TokenId>& out) const override;

 private:
  struct Best;
  std::vector<Best> best_path(std::string_view word) const;
  void append_unknown(std::string_view text, std::vector<TokenId>& out) const;

  const Vocab* vocab_;
  std::vector<double> scores_;
  double unk_score_ = 0;
  std::optional<TokenId> unk_;
  bool byte_fallback_;
  std::array<TokenId, 256> byte_ids_{};  // -1: none
  ByteTrie trie_;
};

}  // namespace rbee::text
