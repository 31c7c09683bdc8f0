#include "rbee/engine/text/form/reasoning.h"

#include <algorithm>

#include "rbee/text/utf8.h"

namespace rbee::engine {
namespace {

// Bytes of text that are remembered: more than a mark has.
constexpr size_t kTail = 64;
// Tokens that can follow within a character.
constexpr int32_t kMostOfCharacter = 3;

// The text ends within a character.
bool ends_open(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(text.size(), 3); ++back) {
    const std::string_view end = text.substr(text.size() - back);
    if ((static_cast<unsigned char>(end.front()) & 0xc0) == 0x80) continue;
    return text::utf8_step(end).part == text::Utf8Part::open;
  }
  return false;
}

}  // namespace

Reasoning::Reasoning(const text::Tokenizer& tokenizer, const text::OutputParserOptions& options,
                     std::optional<int32_t> budget)
    : tokenizer_(tokenizer), format_(options.format), budget_(budget), parser_(options) {
  if (spent()) force_end();
}

std::optional<int32_t> Reasoning::forced() const {
  return next_ < forced_.size() ? std::optional(forced_[next_]) : std::nullopt;
}

void Reasoning::take(int32_t id) {
  const bool text =
      !tokenizer_.is_special(id) || text::is_output_mark(format_, tokenizer_.piece(id, true));
  const std::string piece = text ? tokenizer_.piece(id, true) : std::string();
  const bool as_forced = forced() == id;
  next_ = as_forced ? next_ + 1 : forced_.size();
  const bool inside = parser_.reasons();
  parser_.push(piece);
  const bool counts = inside && parser_.reasons() && !as_forced;
  tokens_ += counts ? 1 : 0;
  remember(piece, counts);
  if (inside && !parser_.reasons()) {
    tokens_ -= counted_of_mark();
    ended_ |= as_forced;
  }
  if (!forced() && spent()) force_end();
}

bool Reasoning::spent() const {
  if (!budget_ || !parser_.reasons() || tokens_ < *budget_) return false;
  return tokens_ >= *budget_ + kMostOfCharacter || !ends_open(tail_);
}

void Reasoning::force_end() {
  forced_ = tokenizer_.encode(ending(), {.add_special = false});
  next_ = 0;
}

// GPT-OSS has to say whom it speaks to next. With functions that is its own choice, unless it
// reasons once more.
std::string Reasoning::ending() const {
  if (const auto marks = text::marks_of(format_.reasoning)) return std::string(marks->close);
  const bool chooses = format_.tools != text::ToolFormat::none && !ended_;
  return std::string("<|end|><|start|>assistant") + (chooses ? "" : "<|channel|>final<|message|>");
}

void Reasoning::remember(std::string_view piece, bool counted) {
  if (piece.empty()) return;
  tail_ += piece;
  pieces_.push_back({piece.size(), counted});
  while (tail_.size() > kTail) {
    tail_.erase(0, pieces_.front().bytes);
    pieces_.erase(pieces_.begin());
  }
}

// Tokens of the mark that ended it just now and that counted as text before it was whole.
int32_t Reasoning::counted_of_mark() const {
  const auto marks = text::marks_of(format_.reasoning);
  const size_t at = marks ? tail_.rfind(marks->close) : std::string::npos;
  if (at == std::string::npos) return 0;
  int32_t count = 0;
  size_t begin = tail_.size();
  for (auto piece = pieces_.rbegin(); piece != pieces_.rend(); ++piece) {
    if (begin < at + piece->bytes) break;
    begin -= piece->bytes;
    count += piece->counted ? 1 : 0;
  }
  return count;
}

}  // namespace rbee::engine
