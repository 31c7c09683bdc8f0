#include "rbee/text/safe_cuts.h"

#include "rbee/text/utf8.h"

namespace rbee::text {
namespace {

constexpr std::string_view kMark = "\xE2\x96\x81";  // U+2581

}  // namespace

void SafeCuts::add_token(std::string_view token) {
  for (size_t at = token.find(kMark, 1); at != token.npos; at = token.find(kMark, at + 1)) {
    before_mark_.insert(utf8_at(token, utf8_previous(token, at)));
  }
}

size_t SafeCuts::first_part(std::string_view text) const {
  for (size_t at = text.find(kMark, 1); at != text.npos; at = text.find(kMark, at + 1)) {
    if (!before_mark_.contains(utf8_at(text, utf8_previous(text, at)))) return at;
  }
  return text.size();
}

}  // namespace rbee::text
