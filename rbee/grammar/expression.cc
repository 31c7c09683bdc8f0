#include "rbee/grammar/expression.h"

#include <algorithm>

#include "rbee/grammar/budget.h"

namespace rbee::grammar {
namespace {

constexpr char32_t kLastScalar = 0x10FFFF;
constexpr int64_t kMakeWork = 20;  // of one expression

ExprPtr make(Expr expr) {
  const size_t within = expr.bytes.size() + expr.parts.size() * sizeof(ExprPtr) +
                        expr.ranges.size() * sizeof(CharRange);
  bill({.work = kMakeWork, .bytes = static_cast<int64_t>(sizeof(Expr) + within)});
  return std::make_shared<const Expr>(std::move(expr));
}

std::vector<CharRange> joined(std::vector<CharRange> ranges) {
  std::vector<CharRange> out;
  std::ranges::sort(ranges, {}, &CharRange::low);
  for (const CharRange& range : ranges) {
    if (!out.empty() && range.low <= out.back().high + 1) {
      out.back().high = std::max(out.back().high, range.high);
    } else {
      out.push_back(range);
    }
  }
  return out;
}

}  // namespace

ExprPtr literal(std::string bytes) {
  Expr out;
  out.kind = Expr::Kind::literal;
  out.bytes = std::move(bytes);
  return make(std::move(out));
}

ExprPtr chars(std::vector<CharRange> ranges) {
  Expr out;
  out.kind = Expr::Kind::chars;
  out.ranges = joined(std::move(ranges));
  return make(std::move(out));
}

ExprPtr tokens(std::vector<CharRange> ids) {
  Expr out;
  out.kind = Expr::Kind::tokens;
  out.ranges = joined(std::move(ids));
  return make(std::move(out));
}

ExprPtr chars_except(std::vector<CharRange> ranges) {
  return chars(complement(std::move(ranges)));
}

ExprPtr rule(int32_t index) {
  Expr out;
  out.kind = Expr::Kind::rule;
  out.rule = index;
  return make(std::move(out));
}

ExprPtr sequence(std::vector<ExprPtr> parts) {
  if (parts.size() == 1) return parts.front();
  Expr out;
  out.kind = Expr::Kind::sequence;
  out.parts = std::move(parts);
  return make(std::move(out));
}

ExprPtr choice(std::vector<ExprPtr> parts) {
  if (parts.size() == 1) return parts.front();
  Expr out;
  out.kind = Expr::Kind::choice;
  out.parts = std::move(parts);
  return make(std::move(out));
}

ExprPtr repeat(ExprPtr part, int64_t min, int64_t max) {
  Expr out;
  out.kind = Expr::Kind::repeat;
  out.parts = {std::move(part)};
  out.min = min;
  out.max = max;
  return make(std::move(out));
}

ExprPtr optional(ExprPtr part) {
  return repeat(std::move(part), 0, 1);
}

std::vector<CharRange> complement(std::vector<CharRange> ranges) {
  ranges.push_back({0xD800, 0xDFFF});  // surrogates are no characters
  std::ranges::sort(ranges, {}, &CharRange::low);
  std::vector<CharRange> out;
  char32_t next = 0;
  for (const CharRange& range : ranges) {
    if (range.low > next) out.push_back({next, range.low - 1});
    next = std::max(next, static_cast<char32_t>(range.high + 1));
  }
  if (next <= kLastScalar) out.push_back({next, kLastScalar});
  return out;
}

}  // namespace rbee::grammar
