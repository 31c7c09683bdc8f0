#include "rbee/text/charsmap.h"

#include <unicode/brkiter.h>
#include <unicode/utext.h>

#include <cstring>
#include <memory>

#include "rbee/core/error.h"
#include "rbee/text/utf8.h"

namespace rbee::text {
namespace {

constexpr size_t kClusterBytes = 6;  // longer clusters go character by character

// Fields of a unit of Darts-clone.
bool has_leaf(uint32_t unit) {
  return (unit >> 8 & 1) != 0;
}
uint32_t value(uint32_t unit) {
  return unit & 0x7FFFFFFF;
}
uint32_t label(uint32_t unit) {
  return unit & 0x800000FF;
}
uint32_t offset(uint32_t unit) {
  return (unit >> 10) << ((unit & 1u << 9) >> 6);
}

bool plain_ascii(char c) {
  return c >= ' ' && c <= '~';
}

// ASCII at the start whose characters are clusters of their own.
size_t ascii_clusters(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && plain_ascii(text[at])) ++at;
  // The last one may carry a combining mark.
  return at < text.size() && at > 0 ? at - 1 : at;
}

}  // namespace

Charsmap::Charsmap(std::string_view blob, std::string_view where) {
  uint32_t bytes = 0;
  check(blob.size() >= sizeof bytes, where, "has ", blob.size(), " bytes");
  std::memcpy(&bytes, blob.data(), sizeof bytes);
  blob.remove_prefix(sizeof bytes);
  check(bytes % 4 == 0 && bytes >= 4 && bytes <= blob.size(), where, "its trie has ", bytes,
        " bytes of ", blob.size());
  units_.resize(bytes / 4);
  std::memcpy(units_.data(), blob.data(), bytes);
  replacements_ = blob.substr(bytes);
}

std::optional<std::string_view> Charsmap::replacement(std::string_view text) const {
  size_t node = offset(units_[0]);
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    node ^= byte;
    if (byte == 0 || node >= units_.size() || label(units_[node]) != byte) return std::nullopt;
    const uint32_t unit = units_[node];
    node ^= offset(unit);
    if (node >= units_.size()) return std::nullopt;
    if (!has_leaf(unit)) continue;
    const size_t begin = value(units_[node]);
    if (begin > replacements_.size()) return std::nullopt;
    const size_t end = std::min(replacements_.find('\0', begin), replacements_.size());
    return std::string_view(replacements_).substr(begin, end - begin);
  }
  return std::nullopt;
}

void Charsmap::append_cluster(std::string_view cluster, std::string& out) const {
  if (cluster.size() < kClusterBytes) {
    if (const auto whole = replacement(cluster)) {
      out += *whole;
      return;
    }
  }
  for (size_t at = 0; at < cluster.size();) {
    const std::string_view character = cluster.substr(at, utf8_length(cluster[at]));
    out += replacement(character).value_or(character);
    at += character.size();
  }
}

std::string Charsmap::apply(std::string_view text) const {
  std::string out;
  out.reserve(text.size());
  UErrorCode status = U_ZERO_ERROR;
  const std::unique_ptr<icu::BreakIterator> breaks(
      icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), status));
  const std::unique_ptr<UText, UText* (*)(UText*)> source(
      utext_openUTF8(nullptr, text.data(), static_cast<int64_t>(text.size()), &status),
      utext_close);
  if (U_SUCCESS(status)) breaks->setText(source.get(), status);
  if (U_FAILURE(status)) fail(Code::internal, "charsmap", u_errorName(status));
  for (size_t begin = 0; begin < text.size();) {
    const size_t simple = ascii_clusters(text.substr(begin));
    for (size_t i = 0; i < simple; ++i) append_cluster(text.substr(begin + i, 1), out);
    begin += simple;
    if (begin == text.size()) break;
    const auto end = static_cast<size_t>(breaks->following(static_cast<int32_t>(begin)));
    append_cluster(text.substr(begin, end - begin), out);
    begin = end;
  }
  // A lying map can point into the middle of a character.
  return utf8_valid(out) ? out : utf8_repaired(out);
}

}  // namespace rbee::text
