#pragma once
// Byte pair encoding with ranked merges of token ids (Hugging Face's BPE model).

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rbee/text/model.h"
#include "rbee/text/safe_cuts.h"
#include "rbee/text/vocab.h"

namespace rbee::text {

struct BpeOptions {
  std::string unk_token;                  // empty: characters outside the vocabulary vanish
  std::string continuing_subword_prefix;  // before every character but the first of a word
  std::string end_of_word_suffix;         // after the last one
  bool fuse_unk = false;                  // neighbouring unknown characters share one token
  bool byte_fallback = false;             // unknown characters become "<0x..>" tokens
  bool ignore_merges = false;             // a word that is a token needs no merges
  bool raw_bytes = false;                 // words hold bytes, tokens GPT-2's alphabet for bytes
};

// (left, right) -> merge; an open hash table.
class MergeTable {
 public:
  void reserve(size_t merges);
  void add(TokenId left, TokenId right, Merge merge);  // replaces an equal pair
  Merge find(TokenId left, TokenId right) const {
    const uint64_t key = key_of(left, right);
    for (size_t at = place(key); entries_[at].key != kFree; at = (at + 1) & mask_) {
      if (entries_[at].key == key) return entries_[at].merge;
    }
    return {};
  }

 private:
  static constexpr uint64_t kFree = ~uint64_t{0};
  struct Entry {
    uint64_t key = kFree;
    Merge merge;
  };
  static uint64_t key_of(TokenId left, TokenId right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  size_t place(uint64_t key) const {
    return static_cast<size_t>((key * 0x9E3779B97F4A7C15u) >> shift_);
  }

  std::vector<Entry> entries_ = std::vector<Entry>(2);
  size_t mask_ = 1;
  int shift_ = 63;
};

class Bpe final : public Model {
 public:
  using Pair = std::pair<std::string, std::string>;

  // merges: best first. Error messages begin with `where` ("tokenizer.json: model"). With
  // raw_bytes, a byte vanishes if its letter is not a token. `vocab` must outlive the model.
  Bpe(const Vocab& vocab, const std::vector<Pair>& merges, BpeOptions options,
      std::string_view where);

  void tokenize(std::string_view word, TokenizeScratch& scratch,
                std::vector<TokenId>& out) const override;

 private:
  void add_merge(const Pair& merge, uint32_t rank, std::string_view where);
  void tokenize_part(std::string_view part, TokenizeScratch& scratch,
                     std::vector<TokenId>& out) const;
  void split_bytes(std::string_view part, std::vector<Symbol>& symbols) const;
  void split_characters(std::string_view part, std::vector<Symbol>& symbols) const;
  bool split_unknown(std::string_view text, Symbol at, bool after_unknown,
                     std::vector<Symbol>& symbols) const;

  const Vocab* vocab_;
  BpeOptions options_;
  MergeTable merges_;
  SafeCuts cuts_;
  bool may_cut_ = false;
  std::optional<TokenId> unk_;
  std::array<TokenId, 256> byte_ids_{};  // of the alphabet's letters, or of "<0x..>"; -1: none
  std::array<TokenId, 128> ascii_ids_{};
  Vocab raw_tokens_;  // tokens by their bytes, for ignore_merges with raw_bytes
};

bool has_byte_alphabet(const Vocab& vocab);

}  // namespace rbee::text
