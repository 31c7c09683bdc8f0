// Grammars made of grammars.

#include <map>
#include <string>

#include "rbee/core/error.h"
#include "rbee/grammar/expression.h"
#include "rbee/grammar/utf8_ranges.h"

namespace rbee::grammar {
namespace {

// Copies trees with their rules' numbers moved. Parts that are shared stay shared.
class Mover {
 public:
  explicit Mover(int32_t by) : by_(by) {}

  ExprPtr move(const ExprPtr& expr) {
    const auto known = done_.find(expr.get());
    if (known != done_.end()) return known->second;
    Expr out = *expr;
    if (out.kind == Expr::Kind::rule) out.rule += by_;
    for (ExprPtr& part : out.parts) part = move(part);
    return done_[expr.get()] = std::make_shared<const Expr>(std::move(out));
  }

 private:
  const int32_t by_;
  std::map<const Expr*, ExprPtr> done_;
};

std::u32string code_points(std::string_view text) {
  std::u32string out;
  for (const char byte : text) {
    const auto value = static_cast<uint8_t>(byte);
    if ((value & 0xC0) == 0x80 && !out.empty()) {
      out.back() = (out.back() << 6) | (value & 0x3F);
    } else {
      // The leading byte's own bits: all of ASCII, else those behind its ones.
      out.push_back(value < 0x80 ? value
                                 : value & (value < 0xE0   ? 0x1F
                                            : value < 0xF0 ? 0x0F
                                                           : 0x07));
    }
  }
  return out;
}

// Characters of the marker's beginning that have come after `known` of them and `c` (Knuth, Morris
// and Pratt 1977).
size_t matched(const std::u32string& marker, size_t known, char32_t c) {
  const std::u32string text = marker.substr(0, known) + c;
  size_t length = std::min(text.size(), marker.size());
  while (marker.compare(0, length, text, text.size() - length, length) != 0) --length;
  return length;
}

}  // namespace

ExprPtr embed(Grammar& into, const Grammar& from) {
  const auto by = static_cast<int32_t>(into.rules.size());
  Mover mover(by);
  for (const Rule& one : from.rules) into.rules.push_back({one.name, mover.move(one.body)});
  return rule(from.root + by);
}

ExprPtr text_until(Grammar& into, std::string_view marker, ExprPtr after, MarkerOr or_what) {
  check(!marker.empty(), "text_until", "the marker is empty");
  const std::u32string wanted = code_points(marker);
  const auto first = static_cast<int32_t>(into.rules.size());
  // One rule for each number of the marker's characters that have come.
  for (size_t known = 0; known < wanted.size(); ++known) {
    std::vector<ExprPtr> ways;
    std::vector<CharRange> told;
    for (const char32_t c : wanted) {
      const size_t length = matched(wanted, known, c);
      bool again = length == 0;
      for (const CharRange& range : told) again |= range.low == c;
      if (again) continue;
      told.push_back({c, c});
      ExprPtr next = length == wanted.size() ? after : rule(first + static_cast<int32_t>(length));
      ways.push_back(sequence({chars({{c, c}}), std::move(next)}));
    }
    ways.push_back(sequence({chars_except(told), rule(first)}));
    if (or_what == MarkerOr::end) ways.push_back(sequence({}));
    into.rules.push_back({cat("text until ", marker), choice(std::move(ways))});
  }
  return rule(first);
}

}  // namespace rbee::grammar
