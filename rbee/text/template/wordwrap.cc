// The filter wordwrap: Python's textwrap.wrap on every line.
// https://docs.python.org/3/library/textwrap.html

#include <algorithm>
#include <deque>

#include "rbee/text/template/failure.h"
#include "rbee/text/template/natives.h"
#include "rbee/text/template/operators.h"
#include "rbee/text/template/unicode.h"

namespace rbee::text::jinja {
namespace {

bool is_blank(char32_t c) {
  return (c >= '\t' && c <= '\r') || c == ' ';
}

bool is_letter(char32_t c) {
  return is_word(c) && !is_decimal(c);
}

bool all_space(const std::u32string& text) {
  return std::all_of(text.begin(), text.end(), is_space);
}

// Cuts a line where it may be wrapped: around white space, after hyphens inside words, and around
// dashes of two or more hyphens.
class Chunks {
 public:
  Chunks(std::u32string_view text, bool at_hyphens) : text_(text), at_hyphens_(at_hyphens) {}

  std::deque<std::u32string> run() {
    std::deque<std::u32string> out;
    for (size_t i = 0; i < text_.size();) {
      const size_t end = chunk_end(i);
      out.emplace_back(text_.substr(i, end - i));
      i = end;
    }
    return out;
  }

 private:
  char32_t at(size_t i) const { return i < text_.size() ? text_[i] : U'\0'; }
  bool letter(size_t i) const { return i < text_.size() && is_letter(text_[i]); }

  size_t chunk_end(size_t begin) const {
    size_t i = begin;
    while (i < text_.size() && is_blank(text_[i])) ++i;
    if (i > begin) return i;
    if (const size_t end = dash_end(begin)) return end;
    for (i = begin + 1; i < text_.size() && !is_blank(text_[i]); ++i) {
      if (at_hyphens_ && hyphen(i)) return i + 1;
      if (dash_end(i) > 0) return i;
    }
    return i;
  }

  // The end of a dash at `i` between words; 0 if there is none.
  size_t dash_end(size_t i) const {
    if (!at_hyphens_ || i == 0 || at(i) != '-') return 0;
    constexpr std::u32string_view kMarks = U"!\"'&.,?";
    if (!is_word(at(i - 1)) && kMarks.find(at(i - 1)) == kMarks.npos) return 0;
    const size_t end = std::min(text_.find_first_not_of(U'-', i), text_.size());
    return end - i >= 2 && end < text_.size() && is_word(text_[end]) ? end : 0;
  }

  // A hyphen with two letters before and after it, as in re-use or e-mail-box.
  bool hyphen(size_t i) const {
    if (at(i) != '-' || i < 2 || !letter(i - 1)) return false;
    const bool before = letter(i - 2) || (at(i - 2) == '-' && i >= 3 && letter(i - 3));
    const bool behind = letter(i + 1) && (letter(i + 2) || (at(i + 2) == '-' && letter(i + 3)));
    return before && behind;
  }

  std::u32string_view text_;
  bool at_hyphens_;
};

struct Style {
  size_t width;
  bool break_words;
  bool at_hyphens;
};

// Moves as much of a chunk that is wider than a line into `line` as fits.
void break_word(std::deque<std::u32string>& chunks, std::u32string& line, const Style& style) {
  std::u32string& chunk = chunks.front();
  if (!style.break_words) {
    if (!line.empty()) return;
    line = std::move(chunk);
    chunks.pop_front();
    return;
  }
  size_t end = style.width - line.size();
  if (style.at_hyphens && chunk.size() > end && end > 0) {
    const size_t hyphen = chunk.rfind(U'-', end - 1);
    const bool useful = hyphen != chunk.npos && hyphen > 0 &&
                        chunk.substr(0, hyphen).find_first_not_of(U'-') != chunk.npos;
    if (useful) end = hyphen + 1;
  }
  line += chunk.substr(0, end);
  chunk.erase(0, end);
}

std::vector<std::u32string> wrap(Runtime& runtime, std::u32string_view text, const Style& style) {
  std::deque<std::u32string> chunks = Chunks(text, style.at_hyphens).run();
  std::vector<std::u32string> lines;
  while (!chunks.empty()) {
    if (!lines.empty() && all_space(chunks.front())) chunks.pop_front();
    std::u32string line;
    size_t last = 0;  // where the line's last chunk begins
    while (!chunks.empty() && line.size() + chunks.front().size() <= style.width) {
      last = line.size();
      line += chunks.front();
      chunks.pop_front();
      runtime.step();
    }
    if (!chunks.empty() && chunks.front().size() > style.width) {
      runtime.step_bytes(64 + chunks.front().size());
      const size_t before = line.size();
      break_word(chunks, line, style);
      if (line.size() > before) last = before;
    }
    if (all_space(line.substr(last))) line.resize(last);
    if (!line.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

Value filter_wordwrap(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("wordwrap", args,
                    {"width", "break_long_words", "wrapstring", "break_on_hyphens"});
  if (self.is(Kind::undefined)) raise_undefined(self);
  if (!self.is(Kind::text)) raise("wordwrap needs a string, got ", type_name(self));
  const int64_t width = given.integer(0, 79);
  if (width <= 0) raise("wordwrap needs a width above 0");
  const Style style{static_cast<size_t>(width), given.flag(1, true), given.flag(3, true)};
  const std::string_view separator = given.is_none(2) ? "\n" : given.text(2, "");
  std::string out;
  bool is_first_line = true;
  for (const std::string_view line : split_lines(self.text().bytes)) {
    std::u32string text;
    for (size_t i = 0; i < line.size();) text.push_back(next_code_point(line, i));
    if (!is_first_line) out += separator;
    is_first_line = false;
    bool is_first = true;
    for (const std::u32string& part : wrap(runtime, text, style)) {
      if (!is_first) out += separator;
      is_first = false;
      for (const char32_t c : part) append_utf8(out, c);
      runtime.heap().require(static_cast<int64_t>(out.size()));
    }
  }
  return runtime.text(std::move(out));
}

}  // namespace rbee::text::jinja
