#include "server/front/paths.h"

#include <algorithm>
#include <cctype>

namespace rbee::server {
namespace {

constexpr size_t kNone = std::string_view::npos;

char at_or_end(std::string_view text, size_t at) {
  return at < text.size() ? text[at] : '\0';
}

bool is_letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0;
}

// May stand inside a word, so that "3/4", "org/repo" and "~/x" begin no path.
bool is_word(char c) {
  const bool more = std::string_view("._~%@+-/\\").find(c) != kNone;
  return more || std::isalnum(static_cast<unsigned char>(c)) != 0 || (c & '\x80') != 0;
}

bool is_slash(char c) {
  return c == '/' || c == '\\';
}

// "/x", "\\host\share" and "C:\x", also behind "file://". Not the address of a web page.
bool begins_path(std::string_view text, size_t at) {
  if (at > 0 && is_word(text[at - 1])) return false;
  const char c = text[at], next = at_or_end(text, at + 1);
  if (c == '\\') return next == '\\';
  if (is_letter(c)) return next == ':' && is_slash(at_or_end(text, at + 2));
  const bool address = at > 0 && text[at - 1] == ':' && next == '/';
  const bool alone = next == ' ' || next == '\0';
  return c == '/' && !alone && (!address || text.substr(0, at).ends_with("file:"));
}

// Whether another name begins that has slashes too.
bool begins_name(std::string_view text) {
  const std::string_view word = text.substr(0, text.find(' '));
  return word.starts_with("hf:") || word.find("://") != kNone;
}

// Paths may have blanks and quotes in them. One ends at the quote that it began with, or where the
// text clearly goes on.
size_t path_end(std::string_view text, size_t begin) {
  const char before = begin > 0 ? text[begin - 1] : '\0';
  const bool enclosed = std::string_view("\"'`(").find(before) != kNone && before != '\0';
  const char closing = before == '(' ? ')' : before;
  for (size_t at = begin + 1; at < text.size(); ++at) {
    const char c = text[at], next = at_or_end(text, at + 1);
    if (c == '\n' || c == '\t') return at;
    if (enclosed && c == closing && (next == '\0' || !is_word(next))) return at;
    if ((c == ':' || c == ';') && next == ' ') return at;
    if (c != ' ' || at + 1 == text.size()) continue;
    const size_t opens = is_word(text[at + 1]) || is_slash(text[at + 1]) ? 0 : 1;
    const size_t after = std::min(at + 1 + opens, text.size() - 1);
    if (begins_name(text.substr(after)) || begins_path(text, after)) return at;
  }
  return text.size();
}

// What follows the last slash, but for one at the very end of the name.
std::string_view last_name(std::string_view path) {
  const size_t last = path.find_last_not_of("/\\:");
  if (last == kNone) return path;
  const size_t slash = path.find_last_of("/\\", last);
  return slash == kNone ? path : path.substr(slash + 1);
}

}  // namespace

std::string without_folders(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (!begins_path(text, at)) {
      out += text[at++];
      continue;
    }
    const size_t end = path_end(text, at);
    out += last_name(text.substr(at, end - at));
    at = end;
  }
  return out;
}

}  // namespace rbee::server
