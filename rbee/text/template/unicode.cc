#include "rbee/text/template/unicode.h"

#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <cstring>

#include "rbee/text/template/failure.h"

namespace rbee::text::jinja {
namespace {

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c & 0x80) == 0; });
}

// Most text is ASCII; ICU's tables are slower.
bool ascii_letter(char32_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool ascii_digit(char32_t c) {
  return c >= '0' && c <= '9';
}

UChar32 icu(char32_t c) {
  return static_cast<UChar32>(c);
}

// Length of the sequence that starts with `lead`; 0 for what cannot start one.
size_t sequence_length(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead < 0xe0) return 2;
  if (lead >= 0xe0 && lead < 0xf0) return 3;
  if (lead >= 0xf0 && lead < 0xf5) return 4;
  return 0;
}

bool is_continuation(char c) {
  return (c & 0xc0) == 0x80;
}

// True when `bytes` (lead included) is one well-formed sequence: no overlong form, no surrogate.
bool well_formed(std::string_view bytes) {
  if (!std::all_of(bytes.begin() + 1, bytes.end(), is_continuation)) return false;
  const auto lead = static_cast<unsigned char>(bytes[0]);
  const auto second = static_cast<unsigned char>(bytes.size() > 1 ? bytes[1] : 0);
  if (lead == 0xe0) return second >= 0xa0;
  if (lead == 0xed) return second < 0xa0;
  if (lead == 0xf0) return second >= 0x90;
  if (lead == 0xf4) return second < 0x90;
  return true;
}

std::string from_icu(const icu::UnicodeString& text) {
  std::string out;
  text.toUTF8String(out);
  return out;
}

icu::UnicodeString to_icu(std::string_view text) {
  if (text.size() > INT32_MAX) raise("a text is too long to change its case");
  return icu::UnicodeString::fromUTF8(
      icu::StringPiece(text.data(), static_cast<int32_t>(text.size())));
}

// One code point's full title case mapping (sharp s gives "Ss").
void append_title_case(std::string& out, char32_t c) {
  icu::UnicodeString one{icu(c)};
  one.toTitle(nullptr, icu::Locale::getRoot(), U_TITLECASE_NO_BREAK_ADJUSTMENT);
  one.toUTF8String(out);
}

bool is_line_end(char32_t c) {
  return (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

}  // namespace

int64_t count_code_points(std::string_view utf8) {
  return std::count_if(utf8.begin(), utf8.end(), [](char c) { return !is_continuation(c); });
}

size_t find_invalid_utf8(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    if ((text[i] & 0x80) == 0) {
      ++i;
      continue;
    }
    const size_t length = sequence_length(static_cast<unsigned char>(text[i]));
    if (length == 0 || length > text.size() - i || !well_formed(text.substr(i, length))) return i;
    i += length;
  }
  return std::string_view::npos;
}

char32_t next_code_point(std::string_view utf8, size_t& position) {
  const auto lead = static_cast<unsigned char>(utf8[position++]);
  if (lead < 0x80) return lead;
  char32_t c = lead < 0xe0 ? lead & 0x1f : lead < 0xf0 ? lead & 0x0f : lead & 0x07;
  while (position < utf8.size() && is_continuation(utf8[position])) {
    c = c << 6 | (static_cast<unsigned char>(utf8[position++]) & 0x3f);
  }
  return c;
}

size_t previous_start(std::string_view utf8, size_t position) {
  do {
    --position;
  } while (position > 0 && is_continuation(utf8[position]));
  return position;
}

void append_utf8(std::string& out, char32_t code_point) {
  const auto c = static_cast<uint32_t>(code_point);
  const auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0 | c >> 6);
    put(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    put(0xe0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3f));
    put(0x80 | (c & 0x3f));
  } else {
    put(0xf0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3f));
    put(0x80 | (c >> 6 & 0x3f));
    put(0x80 | (c & 0x3f));
  }
}

size_t byte_offset(std::string_view utf8, int64_t index) {
  size_t i = 0;
  for (; index > 0 && i < utf8.size(); --index) {
    do {
      ++i;
    } while (i < utf8.size() && is_continuation(utf8[i]));
  }
  return i;
}

bool is_space(char32_t c) {
  if (c < 0x80) return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20);
  if (c == 0x85 || c == 0xa0 || c == 0x1680 || c == 0x202f || c == 0x205f || c == 0x3000) {
    return true;
  }
  return (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029;
}

bool is_alpha(char32_t c) {
  if (c < 0x80) return ascii_letter(c);
  return (U_GET_GC_MASK(icu(c)) & U_GC_L_MASK) != 0;
}

bool is_decimal(char32_t c) {
  if (c < 0x80) return ascii_digit(c);
  return u_charType(icu(c)) == U_DECIMAL_DIGIT_NUMBER;
}

bool is_digit(char32_t c) {
  if (c < 0x80) return ascii_digit(c);
  const int32_t type = u_getIntPropertyValue(icu(c), UCHAR_NUMERIC_TYPE);
  return type == U_NT_DECIMAL || type == U_NT_DIGIT;
}

bool is_numeric(char32_t c) {
  if (c < 0x80) return ascii_digit(c);
  return u_getIntPropertyValue(icu(c), UCHAR_NUMERIC_TYPE) != U_NT_NONE;
}

bool is_alnum(char32_t c) {
  return is_alpha(c) || is_numeric(c);
}

bool is_upper(char32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z';
  return u_isUUppercase(icu(c)) != 0;
}

bool is_lower(char32_t c) {
  if (c < 0x80) return c >= 'a' && c <= 'z';
  return u_isULowercase(icu(c)) != 0;
}

bool is_title(char32_t c) {
  return u_charType(icu(c)) == U_TITLECASE_LETTER;
}

bool is_printable(char32_t c) {
  if (c < 0x80) return c >= 0x20 && c < 0x7f;
  constexpr uint32_t kHidden = U_GC_C_MASK | U_GC_Z_MASK;
  return (U_GET_GC_MASK(icu(c)) & kHidden) == 0;
}

bool is_word(char32_t c) {
  return c == '_' || is_alnum(c);
}

bool is_identifier_start(char32_t c) {
  return c == '_' || u_hasBinaryProperty(icu(c), UCHAR_XID_START) != 0;
}

std::string to_upper(std::string_view text) {
  if (is_ascii(text)) {
    std::string out(text);
    for (char& c : out) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
    return out;
  }
  return from_icu(to_icu(text).toUpper(icu::Locale::getRoot()));
}

std::string to_lower(std::string_view text) {
  if (is_ascii(text)) {
    std::string out(text);
    for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    return out;
  }
  return from_icu(to_icu(text).toLower(icu::Locale::getRoot()));
}

std::string to_capitalized(std::string_view text) {
  if (text.empty()) return {};
  std::string out;
  size_t i = 0;
  append_title_case(out, next_code_point(text, i));
  return out + to_lower(text.substr(i));
}

std::string to_title(std::string_view text) {
  std::string out;
  size_t i = 0;
  while (i < text.size()) {
    // A word is a run of cased characters; what is between stays.
    size_t end = i;
    const auto cased = [&](size_t at) {
      const char32_t c = next_code_point(text, at);
      end = at;
      return is_upper(c) || is_lower(c) || is_title(c);
    };
    const size_t start = i;
    while (i < text.size() && cased(i)) i = end;
    if (i > start) {
      out += to_capitalized(text.substr(start, i - start));
    } else {
      out += text.substr(i, end - i);
      i = end;
    }
  }
  return out;
}

size_t find_text(std::string_view text, std::string_view needle, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (needle.empty()) return from;
  // memmem is linear in the worst case, std::string::find is not.
  const char* start = text.data() + from;
  const void* found = memmem(start, text.size() - from, needle.data(), needle.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

size_t rfind_text(std::string_view text, std::string_view needle) {
  const std::string reversed_text(text.rbegin(), text.rend());
  const std::string reversed_needle(needle.rbegin(), needle.rend());
  const size_t found = find_text(reversed_text, reversed_needle);
  if (found == std::string_view::npos) return found;
  return text.size() - found - needle.size();
}

std::string_view strip(std::string_view text, std::optional<std::string_view> chars, bool left,
                       bool right) {
  std::u32string set;
  if (chars) {
    for (size_t i = 0; i < chars->size();) set.push_back(next_code_point(*chars, i));
    std::sort(set.begin(), set.end());
  }
  const auto drop = [&](char32_t c) {
    return chars ? std::binary_search(set.begin(), set.end(), c) : is_space(c);
  };
  size_t begin = 0;
  while (left && begin < text.size()) {
    size_t next = begin;
    if (!drop(next_code_point(text, next))) break;
    begin = next;
  }
  size_t end = text.size();
  while (right && end > begin) {
    const size_t start = previous_start(text, end);
    size_t next = start;
    if (!drop(next_code_point(text, next))) break;
    end = start;
  }
  return text.substr(begin, end - begin);
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  size_t start = 0;
  size_t i = 0;
  while (i < text.size()) {
    const size_t end = i;
    const char32_t c = next_code_point(text, i);
    if (!is_line_end(c)) continue;
    if (c == '\r' && i < text.size() && text[i] == '\n') ++i;
    lines.push_back(text.substr(start, (keep_ends ? i : end) - start));
    start = i;
  }
  if (start < text.size()) lines.push_back(text.substr(start));
  return lines;
}

}  // namespace rbee::text::jinja
