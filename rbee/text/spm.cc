#include "rbee/text/spm.h"

#include <algorithm>
#include <numeric>

#include "rbee/text/utf8.h"

namespace rbee::text {
namespace {

constexpr size_t kCacheBytes = 48;

// Place of each score from the best on; equal scores share a place.
std::vector<uint32_t> ranks_of(const std::vector<float>& scores) {
  std::vector<uint32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return scores[a] > scores[b]; });
  std::vector<uint32_t> ranks(scores.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const bool equal = i > 0 && scores[order[i]] == scores[order[i - 1]];
    ranks[order[i]] = equal ? ranks[order[i - 1]] : static_cast<uint32_t>(i);
  }
  return ranks;
}

}  // namespace

Spm::Spm(const Vocab& vocab, const std::vector<float>& scores, const std::vector<bool>& mergeable,
         std::optional<TokenId> unk)
    : vocab_(&vocab), rank_(ranks_of(scores)), unk_(unk) {
  for (size_t id = 0; id < rank_.size(); ++id) {
    if (mergeable[id]) {
      cuts_.add_token(vocab.text(static_cast<TokenId>(id)));
    } else {
      rank_[id] = Merge::kNone;
    }
  }
  for (size_t byte = 0; byte < 256; ++byte) {
    byte_ids_[byte] = vocab.find(byte_token(static_cast<uint8_t>(byte))).value_or(-1);
  }
  for (size_t i = 0; i < ascii_ids_.size(); ++i) {
    ascii_ids_[i] = token_of(std::string(1, static_cast<char>(i)));
  }
}

void Spm::tokenize(std::string_view word, TokenizeScratch& scratch,
                   std::vector<TokenId>& out) const {
  while (!word.empty()) {
    const size_t end = cuts_.first_part(word);
    tokenize_part(word.substr(0, end), scratch, out);
    word.remove_prefix(end);
  }
}

void Spm::tokenize_part(std::string_view part, TokenizeScratch& scratch,
                        std::vector<TokenId>& out) const {
  const bool cached = scratch.use_cache && part.size() <= kCacheBytes;
  const uint64_t hash = cached ? hash_bytes(part) : 0;
  if (cached && scratch.cache.append(part, hash, out)) return;
  std::vector<Symbol>& symbols = scratch.merge.symbols;
  symbols.clear();
  for (uint32_t at = 0; at < part.size();) {
    const auto length = static_cast<uint32_t>(utf8_length(part[at]));
    const TokenId id = length == 1 ? ascii_ids_[static_cast<uint8_t>(part[at])]
                                   : token_of(part.substr(at, length));
    symbols.push_back({id, at, length});
    at += length;
  }
  scratch.merge.run([&](const Symbol& left, const Symbol& right) {
    const TokenId id = token_of(part.substr(left.begin, left.length + right.length));
    return id < 0 ? Merge{} : Merge{rank_[static_cast<size_t>(id)], id};
  });
  const size_t first = out.size();
  for (const Symbol& symbol : symbols) {
    if (symbol.id >= 0) {
      out.push_back(symbol.id);
      continue;
    }
    for (const char c : part.substr(symbol.begin, symbol.length)) {
      const TokenId byte = byte_ids_[static_cast<uint8_t>(c)];
      if (byte >= 0) {
        out.push_back(byte);
      } else if (unk_) {
        out.push_back(*unk_);
        break;
      }
    }
  }
  if (cached) scratch.cache.store(part, hash, out, first);
}

}  // namespace rbee::text
