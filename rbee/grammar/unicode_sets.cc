#include "rbee/grammar/unicode_sets.h"

#include <unicode/uniset.h>

#include <algorithm>
#include <string>

#include "rbee/core/cat.h"

namespace rbee::grammar {
namespace {

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '=' || c == ' ' || c == '-' || c == '.';
}

icu::UnicodeSet to_set(const std::vector<CharRange>& ranges) {
  icu::UnicodeSet out;
  for (const CharRange& range : ranges) {
    out.add(static_cast<UChar32>(range.low), static_cast<UChar32>(range.high));
  }
  return out;
}

// Surrogates are no characters.
std::vector<CharRange> to_ranges(icu::UnicodeSet set) {
  set.remove(0xD800, 0xDFFF);
  std::vector<CharRange> out;
  for (int32_t i = 0; i < set.getRangeCount(); ++i) {
    out.push_back(
        {static_cast<char32_t>(set.getRangeStart(i)), static_cast<char32_t>(set.getRangeEnd(i))});
  }
  return out;
}

}  // namespace

std::optional<std::vector<CharRange>> property_chars(std::string_view name) {
  if (name.empty() || !std::ranges::all_of(name, is_name_char)) return std::nullopt;
  const std::string pattern = cat("\\p{", name, "}");
  UErrorCode status = U_ZERO_ERROR;
  const icu::UnicodeSet set(icu::UnicodeString::fromUTF8(pattern), status);
  if (U_FAILURE(status)) return std::nullopt;
  return to_ranges(set);
}

std::vector<CharRange> close_over_case(const std::vector<CharRange>& ranges) {
  icu::UnicodeSet set = to_set(ranges);
  set.closeOver(USET_CASE_INSENSITIVE);
  return to_ranges(set);
}

std::vector<CharRange> both_chars(const std::vector<CharRange>& a,
                                  const std::vector<CharRange>& b) {
  return to_ranges(to_set(a).retainAll(to_set(b)));
}

}  // namespace rbee::grammar
