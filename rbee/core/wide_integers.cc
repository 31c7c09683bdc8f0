#include "rbee/core/wide_integers.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace rbee {
namespace {

// U+FDD1, one of the characters that Unicode keeps out of texts (The Unicode Standard, 23.7),
// stands before the digits. Texts that begin with it get one more.
constexpr std::string_view kMark = "\xEF\xB7\x91";
constexpr std::string_view kEscapedMark = "\\ufdd1";
constexpr std::string_view kNumberBytes = "0123456789+-.eE";

bool begins_with_mark(std::string_view text) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c; };
  return text.starts_with(kMark) ||
         (text.size() >= kEscapedMark.size() &&
          std::ranges::equal(text.substr(0, kEscapedMark.size()), kEscapedMark, {}, lower));
}

// The place of the quote that ends the text with its opening quote at `at`.
size_t text_end(std::string_view json, size_t at) {
  for (++at; at < json.size() && json[at] != '"'; ++at) {
    if (json[at] == '\\') ++at;
  }
  return std::min(at, json.size());
}

bool is_digits(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of(kNumberBytes) == std::string_view::npos;
}

bool is_wide(std::string_view number) {
  if (!is_digits(number)) return false;
  const auto fits = [&](auto value) {
    return std::from_chars(number.data(), number.data() + number.size(), value).ec == std::errc();
  };
  return number.starts_with('-') ? !fits(int64_t{0}) : !fits(uint64_t{0});
}

// holds: whether a text replaces a number.
template <typename Holds>
std::string hold(std::string_view json, const Holds& holds) {
  std::string out;
  out.reserve(json.size());
  for (size_t at = 0; at < json.size();) {
    size_t end = at + 1;
    if (json[at] == '"') {
      end = text_end(json, at);
      out += '"';
      if (begins_with_mark(json.substr(at + 1, end - at - 1))) out += kMark;
      out += json.substr(at + 1, end - at);
      ++end;
    } else if (json[at] == '-' || (json[at] >= '0' && json[at] <= '9')) {
      end = std::min(json.find_first_not_of(kNumberBytes, at), json.size());
      const std::string_view number = json.substr(at, end - at);
      const bool held = holds(number);
      if (held) out.append("\"").append(kMark);
      out += number;
      if (held) out += '"';
    } else {
      out += json[at];
    }
    at = end;
  }
  return out;
}

}  // namespace

std::string hold_integers(std::string_view json) {
  return hold(json, is_wide);
}

std::string hold_numbers(std::string_view json) {
  return hold(json, [](std::string_view number) {
    return is_digits(number) ? is_wide(number) : may_be_rounded(number);
  });
}

bool may_be_rounded(std::string_view number) {
  const size_t exponent = std::min(number.find_first_of("eE"), number.size());
  const auto digits = [](std::string_view text) {
    return std::ranges::count_if(text, [](char c) { return c >= '0' && c <= '9'; });
  };
  // A double distinguishes all decimals of 15 digits, but not those of 10^-400.
  return digits(number.substr(0, exponent)) > 15 || digits(number.substr(exponent)) > 2;
}

std::string held_number(std::string_view text) {
  return std::string(kMark) + std::string(text);
}

std::string held_text(std::string text) {
  return text.starts_with(kMark) ? std::string(kMark) + text : text;
}

std::string release_integers(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (size_t at = 0; at < json.size(); ++at) {
    if (json[at] != '"') {
      out += json[at];
      continue;
    }
    const size_t end = text_end(json, at);
    std::string_view text = json.substr(at + 1, end - at - 1);
    const bool marked = text.starts_with(kMark);
    if (marked) text.remove_prefix(kMark.size());
    if (marked && is_number(text)) {
      out += text;
    } else {
      out.append("\"").append(text).append("\"");
    }
    at = end;
  }
  return out;
}

}  // namespace rbee
