#include "rbee/text/bpe.h"

#include "rbee/core/error.h"
#include "rbee/text/byte_alphabet.h"
#include "rbee/text/utf8.h"

namespace rbee::text {
namespace {

constexpr size_t kCacheBytes = 48;  // longer words hardly come twice

std::string letter_text(uint8_t byte) {
  std::string text;
  append_utf8(text, alphabet_letter(byte));
  return text;
}

}  // namespace

void MergeTable::reserve(size_t merges) {
  size_t wanted = 2;
  shift_ = 63;
  while (wanted < merges * 2) {
    wanted *= 2;
    --shift_;
  }
  entries_.assign(wanted, {});
  mask_ = wanted - 1;
}

void MergeTable::add(TokenId left, TokenId right, Merge merge) {
  const uint64_t key = key_of(left, right);
  size_t at = place(key);
  while (entries_[at].key != kFree && entries_[at].key != key) at = (at + 1) & mask_;
  entries_[at] = {key, merge};
}

bool has_byte_alphabet(const Vocab& vocab) {
  for (int byte = 0; byte < 256; ++byte) {
    if (!vocab.find(letter_text(static_cast<uint8_t>(byte)))) return false;
  }
  return true;
}

Bpe::Bpe(const Vocab& vocab, const std::vector<Pair>& merges, BpeOptions options,
         std::string_view where)
    : vocab_(&vocab), options_(std::move(options)) {
  check(merges.size() < Merge::kNone, where, merges.size(), " merges are too many");
  merges_.reserve(merges.size() + 1);
  for (size_t i = 0; i < merges.size(); ++i) {
    add_merge(merges[i], static_cast<uint32_t>(i), where);
  }
  if (!options_.unk_token.empty()) {
    unk_ = vocab.find(options_.unk_token);
    check(unk_.has_value(), where, "unk_token \"", options_.unk_token, "\" is not in the vocab");
  }
  for (size_t i = 0; i < 256; ++i) {
    const auto byte = static_cast<uint8_t>(i);
    byte_ids_[i] =
        vocab.find(options_.raw_bytes ? letter_text(byte) : byte_token(byte)).value_or(-1);
  }
  for (size_t i = 0; i < 128; ++i) {
    ascii_ids_[i] = vocab.find(std::string(1, static_cast<char>(i))).value_or(-1);
  }
  if (options_.raw_bytes && options_.ignore_merges) {
    for (int64_t id = 0; id < vocab.size(); ++id) {
      const auto bytes = from_alphabet(vocab.text(static_cast<TokenId>(id)));
      if (bytes && !bytes->empty()) raw_tokens_.add(*bytes, static_cast<TokenId>(id));
    }
  }
  may_cut_ = !options_.raw_bytes && options_.continuing_subword_prefix.empty() &&
             options_.end_of_word_suffix.empty() && vocab.find("\xE2\x96\x81").has_value();
}

void Bpe::add_merge(const Pair& merge, uint32_t rank, std::string_view where) {
  const auto& [left, right] = merge;
  const auto id_of = [&](const std::string& text) {
    const auto id = vocab_->find(text);
    if (!id) {
      fail(Code::invalid_argument, cat(where, ".merges[", rank, "]"), "token \"", text,
           "\" is not in the vocab");
    }
    return *id;
  };
  const TokenId left_id = id_of(left), right_id = id_of(right);
  const std::string& prefix = options_.continuing_subword_prefix;
  const bool cut = !prefix.empty() && right.starts_with(prefix);
  const std::string text = left + (cut ? right.substr(prefix.size()) : right);
  merges_.add(left_id, right_id, {rank, id_of(text)});
  cuts_.add_token(text);
}

void Bpe::tokenize(std::string_view word, TokenizeScratch& scratch,
                   std::vector<TokenId>& out) const {
  if (options_.ignore_merges) {
    const auto whole = options_.raw_bytes ? raw_tokens_.find(word) : vocab_->find(word);
    if (whole) return out.push_back(*whole);
  }
  while (!word.empty()) {
    const size_t end = may_cut_ ? cuts_.first_part(word) : word.size();
    tokenize_part(word.substr(0, end), scratch, out);
    word.remove_prefix(end);
  }
}

void Bpe::tokenize_part(std::string_view part, TokenizeScratch& scratch,
                        std::vector<TokenId>& out) const {
  const bool cached = scratch.use_cache && part.size() > 1 && part.size() <= kCacheBytes;
  const uint64_t hash = cached ? hash_bytes(part) : 0;
  if (cached && scratch.cache.append(part, hash, out)) return;
  std::vector<Symbol>& symbols = scratch.merge.symbols;
  symbols.clear();
  if (options_.raw_bytes) {
    split_bytes(part, symbols);
  } else {
    split_characters(part, symbols);
  }
  scratch.merge.run(
      [this](const Symbol& left, const Symbol& right) { return merges_.find(left.id, right.id); });
  const size_t first = out.size();
  for (const Symbol& symbol : symbols) out.push_back(symbol.id);
  if (cached) scratch.cache.store(part, hash, out, first);
}

void Bpe::split_bytes(std::string_view part, std::vector<Symbol>& symbols) const {
  for (uint32_t i = 0; i < part.size(); ++i) {
    const TokenId id = byte_ids_[static_cast<uint8_t>(part[i])];
    if (id >= 0) symbols.push_back({id, i, 1});
  }
}

void Bpe::split_characters(std::string_view part, std::vector<Symbol>& symbols) const {
  const bool plain =
      options_.continuing_subword_prefix.empty() && options_.end_of_word_suffix.empty();
  std::string decorated;
  bool after_unknown = false;
  for (uint32_t at = 0; at < part.size();) {
    const auto length = static_cast<uint32_t>(utf8_length(part[at]));
    std::string_view text = part.substr(at, length);
    if (!plain) {
      decorated = at > 0 ? options_.continuing_subword_prefix : std::string();
      decorated += text;
      if (at + length == part.size()) decorated += options_.end_of_word_suffix;
      text = decorated;
    }
    const TokenId id = length == 1 && plain ? ascii_ids_[static_cast<uint8_t>(part[at])]
                                            : vocab_->find(text).value_or(-1);
    bool unknown = false;
    if (id >= 0) {
      symbols.push_back({id, at, length});
    } else {
      unknown = split_unknown(text, {-1, at, length}, after_unknown, symbols);
    }
    after_unknown = unknown;
    at += length;
  }
}

// A character outside the vocabulary: its bytes, or the unknown token (true), or nothing.
bool Bpe::split_unknown(std::string_view text, Symbol at, bool after_unknown,
                        std::vector<Symbol>& symbols) const {
  bool fallback = options_.byte_fallback;
  for (const char c : text) fallback = fallback && byte_ids_[static_cast<uint8_t>(c)] >= 0;
  if (fallback) {
    for (const char c : text) symbols.push_back({byte_ids_[static_cast<uint8_t>(c)], at.begin, 1});
    return false;
  }
  if (!unk_) return false;
  if (after_unknown && options_.fuse_unk) {
    symbols.back().length += at.length;
    return true;
  }
  symbols.push_back({*unk_, at.begin, at.length});
  return true;
}

}  // namespace rbee::text
