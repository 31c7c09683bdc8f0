#include "rbee/text/added_tokens.h"

#include "rbee/text/char_class.h"
#include "rbee/text/utf8.h"

namespace rbee::text {
namespace {

bool has(std::string_view text, size_t at, CategoryMask mask) {
  return (CharClasses::get()[utf8_at(text, at)] & mask) != 0;
}

bool touches_word(std::string_view text, size_t begin, size_t end) {
  return (begin > 0 && has(text, utf8_previous(text, begin), kWordBit)) ||
         (end < text.size() && has(text, end, kWordBit));
}

}  // namespace

AddedTokenFinder::AddedTokenFinder(std::vector<Key> keys) : keys_(std::move(keys)) {
  std::vector<std::pair<std::string_view, int32_t>> texts;
  texts.reserve(keys_.size());
  for (size_t i = 0; i < keys_.size(); ++i) {
    texts.emplace_back(keys_[i].text, static_cast<int32_t>(i));
  }
  trie_ = ByteTrie(std::move(texts));
}

void AddedTokenFinder::find(std::string_view text, bool parse_special,
                            std::vector<Section>& out) const {
  size_t done = 0;  // start of the text that is in no section yet
  const auto close_text = [&](size_t end) {
    if (end > done) out.push_back({text.substr(done, end - done), -1});
  };
  for (size_t at = 0; at < text.size();) {
    size_t length = 0;
    int32_t found = -1;
    if (trie_.can_start(text[at])) {
      trie_.prefixes(text.substr(at), [&](size_t key_length, int32_t key) {
        length = key_length;
        found = key;
      });
    }
    if (found < 0) {
      ++at;
      continue;
    }
    const AddedToken& token = *keys_[static_cast<size_t>(found)].token;
    size_t begin = at, end = at + length;
    at = end;
    if (token.special && !parse_special) continue;
    if (token.single_word && touches_word(text, begin, end)) continue;
    while (token.lstrip && begin > done && has(text, utf8_previous(text, begin), kSpaceBit)) {
      begin = utf8_previous(text, begin);
    }
    while (token.rstrip && end < text.size() && has(text, end, kSpaceBit)) {
      end += utf8_length(text[end]);
    }
    close_text(begin);
    out.push_back({text.substr(begin, end - begin), token.id});
    done = at = end;
  }
  close_text(text.size());
}

}  // namespace rbee::text
