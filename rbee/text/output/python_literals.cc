#include "rbee/text/output/python_literals.h"

#include <algorithm>
#include <array>
#include <utility>

namespace rbee::text {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kLiterals{
    {{"True", "true"}, {"False", "false"}, {"None", "null"}}};

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

}  // namespace

void PythonLiterals::push(std::string_view text, std::string& out) {
  for (const char c : text) push(c, out);
}

void PythonLiterals::push(char c, std::string& out) {
  if (quote_ != 0) return inside(c, out);
  const bool may_be = std::ranges::any_of(kLiterals, [&](const auto& literal) {
    return literal.first.starts_with(word_) && literal.first.substr(word_.size()).starts_with(c);
  });
  if (is_letter(c) && may_be) {
    word_ += c;
    return;
  }
  flush(out);
  if (c == '"' || c == '\'') {
    quote_ = c;
    out += '"';
  } else {
    out += c;
  }
}

void PythonLiterals::inside(char c, std::string& out) {
  if (escaped_) {
    escaped_ = false;
    if (c != '\'') out += '\\';  // JSON has no escape of it
    out += c;
  } else if (c == '\\') {
    escaped_ = true;
  } else if (c == quote_) {
    quote_ = 0;
    out += '"';
  } else {
    if (c == '"') out += '\\';
    out += c;
  }
}

void PythonLiterals::flush(std::string& out) {
  const auto literal =
      std::ranges::find(kLiterals, word_, [](const auto& entry) { return entry.first; });
  out += literal == kLiterals.end() ? std::string_view(word_) : literal->second;
  word_.clear();
  if (std::exchange(escaped_, false)) out += '\\';
}

std::string json_of_python(std::string_view text) {
  PythonLiterals reader;
  std::string out;
  reader.push(text, out);
  reader.flush(out);
  return out;
}

}  // namespace rbee::text
