#include "rbee/diffusion/prompt.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

#include "rbee/core/error.h"

namespace rbee::diffusion {
namespace {

constexpr float kStep = 1.1f;
constexpr float kMost = 1000;  // of a weight, so that products of nested ones stay finite
constexpr std::string_view kBreak = "BREAK";
constexpr std::string_view kDigits = "+-.0123456789";
constexpr size_t kNone = std::string_view::npos;

bool is_space(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// A decimal number with blanks around it and nothing else.
std::optional<float> number(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  if (text.empty() || text.find_first_not_of(kDigits) != kNone) return std::nullopt;
  const std::string whole(text);
  char* end = nullptr;
  const float value = std::strtof(whole.c_str(), &end);
  if (end != whole.c_str() + whole.size()) return std::nullopt;
  return std::clamp(value, -kMost, kMost);
}

// AUTOMATIC1111's rules, one character after another.
class WeightParser {
 public:
  explicit WeightParser(std::string_view text) : text_(text) {}

  std::vector<PromptPart> parse() {
    while (at_ < text_.size()) take();
    flush();
    while (!round_.empty()) close(round_, kStep);
    while (!square_.empty()) close(square_, 1 / kStep);
    return std::move(parts_);
  }

 private:
  using Stack = std::vector<size_t>;  // first part inside each open bracket

  void take() {
    const char c = text_[at_];
    if (c == '\\') {
      ++at_;
      if (at_ < text_.size() && is_special(text_[at_])) literal_ += text_[at_++];
    } else if (c == '(' || c == '[') {
      flush();
      (c == '(' ? round_ : square_).push_back(parts_.size());
      ++at_;
    } else if (c == ':' && !round_.empty() && take_weight()) {
      return;
    } else if ((c == ')' && !round_.empty()) || (c == ']' && !square_.empty())) {
      flush();
      c == ')' ? close(round_, kStep) : close(square_, 1 / kStep);
      ++at_;
    } else if (!take_break()) {
      literal_ += c;
      ++at_;
    }
  }

  static bool is_special(char c) {
    return c == '(' || c == ')' || c == '[' || c == ']' || c == '\\';
  }

  // ": 1.3)" ends a round bracket.
  bool take_weight() {
    // No further than a weight may go: each colon looks.
    const auto may_be_weight = [](char c) { return is_space(c) || kDigits.find(c) != kNone; };
    size_t end = at_ + 1;
    while (end < text_.size() && may_be_weight(text_[end])) ++end;
    if (end == text_.size() || text_[end] != ')') return false;
    const auto weight = number(text_.substr(at_ + 1, end - at_ - 1));
    if (!weight) return false;
    flush();
    close(round_, *weight);
    at_ = end + 1;
    return true;
  }

  bool take_break() {
    if (text_.substr(at_, kBreak.size()) != kBreak) return false;
    const size_t end = at_ + kBreak.size();
    if (at_ > 0 && is_word(text_[at_ - 1])) return false;
    if (end < text_.size() && is_word(text_[end])) return false;
    while (!literal_.empty() && is_space(literal_.back())) literal_.pop_back();
    flush();
    parts_.push_back({.text = {}, .weight = 1, .ends_chunk = true});
    at_ = end;
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    return true;
  }

  void flush() {
    if (!literal_.empty()) parts_.push_back({.text = std::exchange(literal_, {})});
  }

  void close(Stack& open, float factor) {
    for (size_t i = open.back(); i < parts_.size(); ++i) {
      if (parts_[i].ends_chunk) continue;
      parts_[i].weight = std::clamp(parts_[i].weight * factor, -kMost, kMost);
    }
    open.pop_back();
  }

  std::string_view text_;
  size_t at_ = 0;
  std::string literal_;
  std::vector<PromptPart> parts_;
  Stack round_, square_;
};

// The bracket that closes the one at `open`, or kNone; escaped ones do not count.
size_t closing(std::string_view text, size_t open) {
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '(') {
      ++depth;
    } else if (text[i] == ')' && --depth == 0) {
      return i;
    }
  }
  return kNone;
}

void append_unescaped(std::string& out, std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape =
        text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == '(' || text[i + 1] == ')');
    out += text[escape ? ++i : i];
  }
}

// ComfyUI's rules. Deeper brackets than kDeepest are ordinary characters.
void parse_comfy(std::string_view text, float weight, int depth, std::vector<PromptPart>& parts) {
  constexpr int kDeepest = 64;
  std::string literal;
  const auto flush = [&] {
    if (!literal.empty()) parts.push_back({std::exchange(literal, {}), weight});
  };
  for (size_t i = 0; i < text.size();) {
    if (text[i] == '\\' && i + 1 < text.size()) {
      append_unescaped(literal, text.substr(i, 2));
      i += 2;
      continue;
    }
    const size_t end = text[i] == '(' && depth < kDeepest ? closing(text, i) : kNone;
    if (end == kNone) {
      literal += text[i++];
      continue;
    }
    flush();
    std::string_view inside = text.substr(i + 1, end - i - 1);
    float inner = std::min(weight * kStep, kMost);
    const size_t colon = inside.rfind(':');
    if (colon != kNone && colon > 0) {
      if (const auto given = number(inside.substr(colon + 1))) {
        inner = *given;
        inside = inside.substr(0, colon);
      }
    }
    parse_comfy(inside, inner, depth + 1, parts);
    i = end + 1;
  }
  flush();
}

std::vector<PromptPart> joined(std::vector<PromptPart> parts) {
  std::vector<PromptPart> out;
  for (PromptPart& part : parts) {
    const bool same = !out.empty() && !out.back().ends_chunk && !part.ends_chunk &&
                      out.back().weight == part.weight;
    if (same) {
      out.back().text += part.text;
    } else {
      out.push_back(std::move(part));
    }
  }
  if (out.empty()) out.emplace_back();
  return out;
}

// Collects ids and cuts them into chunks.
class Chunker {
 public:
  explicit Chunker(const ChunkOptions& options)
      : options_(options),
        capacity_(static_cast<size_t>(options.length) - 1 - (options.start ? 1 : 0)) {}

  void add(int32_t id, float weight) {
    if (options_.comma == id) {
      after_comma_ = ids_.size() + 1;
    } else if (ids_.size() == capacity_ && after_comma_ > 0 &&
               ids_.size() + 1 - after_comma_ <= static_cast<size_t>(options_.look_back)) {
      cut(after_comma_);
    }
    if (ids_.size() == capacity_) cut(capacity_);
    const size_t whole = options_.together ? options_.together(id) : 1;
    if (whole <= capacity_ && ids_.size() + whole > capacity_) end_chunk();
    ids_.push_back(id);
    weights_.push_back(weight);
  }

  // The first `count` ids become a chunk, the others begin the next one.
  void cut(size_t count) {
    PromptChunk chunk;
    if (options_.start) append(chunk, *options_.start, 1);
    for (size_t i = 0; i < count; ++i) append(chunk, ids_[i], weights_[i]);
    append(chunk, options_.end, 1);
    while (chunk.ids.size() < static_cast<size_t>(options_.length)) append(chunk, options_.pad, 1);
    chunks_.push_back(std::move(chunk));
    ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(count));
    weights_.erase(weights_.begin(), weights_.begin() + static_cast<std::ptrdiff_t>(count));
    after_comma_ = 0;
  }

  void end_chunk() { cut(ids_.size()); }

  std::vector<PromptChunk> finish() {
    if (!ids_.empty() || chunks_.empty()) end_chunk();
    if (options_.single) chunks_.resize(1);
    return std::move(chunks_);
  }

 private:
  static void append(PromptChunk& chunk, int32_t id, float weight) {
    chunk.ids.push_back(id);
    chunk.weights.push_back(weight);
  }

  const ChunkOptions& options_;
  size_t capacity_;
  std::vector<int32_t> ids_;
  std::vector<float> weights_;
  size_t after_comma_ = 0;  // index after the last comma of ids_, 0 = none
  std::vector<PromptChunk> chunks_;
};

}  // namespace

std::vector<PromptPart> parse_prompt(std::string_view prompt, PromptSyntax syntax) {
  if (syntax == PromptSyntax::a1111) return joined(WeightParser(prompt).parse());
  if (syntax == PromptSyntax::none) return {{.text = std::string(prompt)}};
  std::vector<PromptPart> parts;
  parse_comfy(prompt, 1, 0, parts);
  return joined(std::move(parts));
}

bool PromptChunk::weighted() const {
  return std::ranges::any_of(weights, [](float weight) { return weight != 1; });
}

std::vector<PromptChunk> chunk_prompt(const std::vector<PromptPart>& parts, const Encode& encode,
                                      const ChunkOptions& options) {
  constexpr int32_t kShortest = 3;
  check(options.length >= kShortest, "prompt", "a chunk of ", options.length,
        " ids has no room for text");
  Chunker chunker(options);
  for (const PromptPart& part : parts) {
    if (part.ends_chunk) {
      chunker.end_chunk();
      continue;
    }
    for (const int32_t id : encode(part.text)) chunker.add(id, part.weight);
  }
  return chunker.finish();
}

}  // namespace rbee::diffusion
