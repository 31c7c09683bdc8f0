#include "rbee/text/wordpiece.h"

#include <algorithm>

#include "rbee/text/utf8.h"

namespace rbee::text {

void WordPiece::tokenize(std::string_view word, TokenizeScratch&, std::vector<TokenId>& out) const {
  const auto characters = std::count_if(
      word.begin(), word.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; });
  if (characters > options_.max_characters) return out.push_back(options_.unk);
  const size_t first = out.size();
  std::string candidate;
  for (size_t begin = 0; begin < word.size();) {
    candidate = begin > 0 ? options_.continuing_subword_prefix : std::string();
    const size_t prefix = candidate.size();
    candidate += word.substr(begin);
    auto id = vocab_->find(candidate);
    while (!id && candidate.size() > prefix) {
      candidate.resize(utf8_previous(candidate, candidate.size()));
      if (candidate.size() > prefix) id = vocab_->find(candidate);
    }
    if (!id) {
      out.resize(first);
      return out.push_back(options_.unk);
    }
    out.push_back(*id);
    begin += candidate.size() - prefix;
  }
}

}  // namespace rbee::text
