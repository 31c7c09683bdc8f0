#include "rbee/text/unigram.h"

#include <algorithm>
#include <limits>

#include "rbee/core/error.h"
#include "rbee/text/utf8.h"

namespace rbee::text {
namespace {

constexpr size_t kCacheBytes = 48;
constexpr double kUnknownPenalty = 10.0;  // below the least score, as SentencePiece has it

}  // namespace

// The best path to a border of the word.
struct Unigram::Best {
  double score = -std::numeric_limits<double>::infinity();
  TokenId id = -1;     // of the last token; -1: unknown
  int64_t begin = -1;  // where that token starts; -1: no path yet
};

Unigram::Unigram(const Vocab& vocab, std::vector<double> scores, const std::vector<bool>& usable,
                 std::optional<TokenId> unk, bool byte_fallback)
    : vocab_(&vocab), scores_(std::move(scores)), unk_(unk), byte_fallback_(byte_fallback) {
  std::vector<std::pair<std::string_view, int32_t>> keys;
  double least = std::numeric_limits<double>::infinity();
  for (size_t id = 0; id < scores_.size(); ++id) {
    const std::string_view text = vocab.text(static_cast<TokenId>(id));
    least = std::min(least, scores_[id]);
    if (usable[id] && !text.empty()) keys.emplace_back(text, static_cast<int32_t>(id));
  }
  trie_ = ByteTrie(std::move(keys));
  unk_score_ = (scores_.empty() ? 0.0 : least) - kUnknownPenalty;
  for (size_t byte = 0; byte < 256; ++byte) {
    byte_ids_[byte] = vocab.find(byte_token(static_cast<uint8_t>(byte))).value_or(-1);
  }
}

std::vector<Unigram::Best> Unigram::best_path(std::string_view word) const {
  std::vector<Best> best(word.size() + 1);
  best[0].score = 0;
  for (size_t at = 0; at < word.size();) {
    const size_t character = utf8_length(word[at]);
    const double here = best[at].score;
    bool covered = false;
    const auto offer = [&](size_t length, TokenId id, double score) {
      Best& end = best[at + length];
      if (end.begin >= 0 && !(here + score > end.score)) return;
      end = {here + score, id, static_cast<int64_t>(at)};
    };
    trie_.prefixes(word.substr(at), [&](size_t length, int32_t id) {
      offer(length, id, scores_[static_cast<size_t>(id)]);
      covered = covered || length == character;
    });
    if (!covered) offer(character, -1, unk_score_);
    at += character;
  }
  return best;
}

void Unigram::append_unknown(std::string_view text, std::vector<TokenId>& out) const {
  // A run of unknown characters can spell a token, e.g. the unknown token's own name.
  if (const auto id = vocab_->find(text)) return out.push_back(*id);
  const auto has_token = [&](char c) { return byte_ids_[static_cast<uint8_t>(c)] >= 0; };
  if (byte_fallback_ && std::all_of(text.begin(), text.end(), has_token)) {
    for (const char c : text) out.push_back(byte_ids_[static_cast<uint8_t>(c)]);
    return;
  }
  check(unk_.has_value(), "tokenizer", "\"", text,
        "\" is not in the vocabulary, and there is no unknown token");
  out.push_back(*unk_);
}

void Unigram::tokenize(std::string_view word, TokenizeScratch& scratch,
                       std::vector<TokenId>& out) const {
  const bool cached = scratch.use_cache && word.size() <= kCacheBytes;
  const uint64_t hash = cached ? hash_bytes(word) : 0;
  if (cached && scratch.cache.append(word, hash, out)) return;
  const std::vector<Best> best = best_path(word);
  const auto is_unknown = [&](const Best& node) { return node.id < 0 || node.id == unk_; };
  std::vector<size_t> borders;  // ends of the tokens, last first
  for (size_t end = word.size(); end > 0; end = static_cast<size_t>(best[end].begin)) {
    borders.push_back(end);
  }
  const size_t first = out.size();
  for (size_t i = borders.size(); i-- > 0;) {
    const Best& node = best[borders[i]];
    const auto begin = static_cast<size_t>(node.begin);
    if (!is_unknown(node)) {
      out.push_back(node.id);
      continue;
    }
    while (unk_ && i > 0 && is_unknown(best[borders[i - 1]])) --i;
    append_unknown(word.substr(begin, borders[i] - begin), out);
  }
  if (cached) scratch.cache.store(word, hash, out, first);
}

}  // namespace rbee::text
