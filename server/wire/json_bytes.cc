#include "server/wire/json_bytes.h"

namespace rbee::server {
namespace {

constexpr size_t kLong = size_t{64} << 10;
constexpr char kFirstPrintable = ' ', kLastPrintable = '~';

// Where the string that begins at `at` ends, or the text's end. plain: whether it means itself.
size_t end_of_string(std::string_view text, size_t at, bool& plain) {
  plain = true;
  while (at < text.size() && text[at] != '"') {
    const char c = text[at];
    if (c < kFirstPrintable || c > kLastPrintable || c == '\\') plain = false;
    at += c == '\\' ? 2 : 1;
  }
  return at;
}

bool is_name(std::string_view text, size_t after) {
  const size_t next = text.find_first_not_of(" \t\r\n", after);
  return next != std::string_view::npos && text[next] == ':';
}

}  // namespace

std::vector<LongString> long_strings(std::string_view text) {
  std::vector<LongString> out;
  for (size_t quote = text.find('"'); quote != std::string_view::npos;) {
    const size_t begin = quote + 1;
    bool plain = false;
    const size_t end = end_of_string(text, begin, plain);
    if (end >= text.size()) break;
    if (plain && end - begin >= kLong && !is_name(text, end + 1)) {
      out.push_back({text.data() + begin, text.data() + end});
    }
    quote = text.find('"', end + 1);
  }
  return out;
}

}  // namespace rbee::server
