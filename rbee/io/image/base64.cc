#include "rbee/io/image/base64.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "rbee/core/error.h"

namespace rbee::io {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr int8_t kNoDigit = -1;
constexpr int8_t kBlank = -2;

constexpr std::array<int8_t, 256> digits() {
  std::array<int8_t, 256> out{};
  out.fill(kNoDigit);
  for (size_t i = 0; i < kAlphabet.size(); ++i) {
    out[static_cast<uint8_t>(kAlphabet[i])] = static_cast<int8_t>(i);
  }
  out['-'] = out['+'];
  out['_'] = out['/'];
  for (const char c : {' ', '\t', '\r', '\n'}) out[static_cast<uint8_t>(c)] = kBlank;
  return out;
}
constexpr std::array<int8_t, 256> kDigits = digits();

// `lower` is in lower case, `text` in any.
bool is_same(std::string_view text, std::string_view lower) {
  return std::ranges::equal(text, lower, [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? a + ('a' - 'A') : a) == b;
  });
}

std::string_view without_url(std::string_view text, std::string_view field) {
  constexpr std::string_view kScheme = "data:", kMark = ";base64";
  if (!is_same(text.substr(0, kScheme.size()), kScheme)) return text;
  const size_t comma = text.find(',');
  const std::string_view head = text.substr(0, comma);
  const bool marked = comma != std::string_view::npos && head.size() >= kMark.size() &&
                      is_same(head.substr(head.size() - kMark.size()), kMark);
  check(marked, field, "a data: URL that is not in base64");
  return text.substr(comma + 1);
}

}  // namespace

std::string encode_base64(std::string_view bytes) {
  std::string out;
  append_base64(out, bytes);
  return out;
}

void append_base64(std::string& out, std::string_view bytes) {
  const size_t start = out.size();
  out.resize(start + (bytes.size() + 2) / 3 * 4, '=');
  const auto byte = [&](size_t i) { return uint32_t{static_cast<uint8_t>(bytes[i])}; };
  const auto digit = [](uint32_t bits, int shift) { return kAlphabet[bits >> shift & 63]; };
  char* to = out.data() + start;
  size_t i = 0;
  for (; i + 3 <= bytes.size(); i += 3, to += 4) {
    const uint32_t bits = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    for (int k = 0; k < 4; ++k) to[k] = digit(bits, 18 - 6 * k);
  }
  if (i == bytes.size()) return;
  const bool two = i + 2 == bytes.size();
  const uint32_t bits = byte(i) << 16 | (two ? byte(i + 1) << 8 : 0);
  to[0] = digit(bits, 18);
  to[1] = digit(bits, 12);
  if (two) to[2] = digit(bits, 6);
}

std::string decode_base64(std::string_view text, std::string_view field) {
  const std::string_view body = without_url(text, field);
  std::string out;
  out.reserve(body.size() / 4 * 3 + 3);
  uint32_t bits = 0;
  int held = 0;  // bits of `bits` that are not in `out` yet
  bool ended = false;
  for (size_t i = 0; i < body.size(); ++i) {
    const int8_t digit = kDigits[static_cast<uint8_t>(body[i])];
    if (digit == kBlank) continue;
    if (body[i] == '=') {
      ended = true;
      continue;
    }
    check(digit != kNoDigit && !ended, field, "character ", i, " is not base64");
    bits = bits << 6 | static_cast<uint32_t>(digit);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    out += static_cast<char>(bits >> held & 0xff);
  }
  check(held < 6, field, "the base64 text ends within a byte");
  return out;
}

}  // namespace rbee::io
