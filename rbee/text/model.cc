#include "rbee/text/model.h"

namespace rbee::text {

bool WordCache::append(std::string_view word, uint64_t hash, std::vector<TokenId>& out) const {
  if (places_.empty()) return false;
  const Place& place = places_[hash % kPlaces];
  if (std::string_view(place.word, place.length) != word) return false;
  const auto first = ids_.begin() + place.first;
  out.insert(out.end(), first, first + place.count);
  return true;
}

void WordCache::store(std::string_view word, uint64_t hash, const std::vector<TokenId>& out,
                      size_t first) {
  if (places_.empty()) places_.resize(kPlaces);
  if (ids_.size() > kMaxIds) {
    ids_.clear();
    places_.assign(kPlaces, {});
  }
  places_[hash % kPlaces] = {word.data(), static_cast<uint32_t>(word.size()),
                             static_cast<uint32_t>(ids_.size()),
                             static_cast<uint32_t>(out.size() - first)};
  ids_.insert(ids_.end(), out.begin() + static_cast<std::ptrdiff_t>(first), out.end());
}

std::string byte_token(uint8_t byte) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  return {'<', '0', 'x', kDigits[byte >> 4], kDigits[byte & 15], '>'};
}

int byte_of_token(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  int value = 0;
  for (const char c : text.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                             : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

}  // namespace rbee::text
