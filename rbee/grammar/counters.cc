#include "rbee/grammar/counters.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "rbee/grammar/budget.h"
#include "rbee/grammar/text_set.h"

namespace rbee::grammar {
namespace {

// States that a repetition may take as copies of its part. Copies are read faster than counters:
// one place stands for all ways to read them.
constexpr int64_t kMaxCopied = 300;
constexpr int64_t kMaxSize = int64_t{1} << 40;
constexpr int64_t kRangeStates = 3;  // between the bytes of a range of characters beyond ASCII

constexpr int64_t kFewCopies = 3;
constexpr int64_t kLookWork = 10;  // at an expression with parts
constexpr int kRounds = 3;         // through all rules, in search of those that may be empty

// Facts about an expression.
struct Shape {
  int64_t size = 0;  // states that it takes, about
  bool empty = false;
  bool calls = false;  // some rule
};

class Counters {
 public:
  explicit Counters(const Grammar& grammar) : grammar_(grammar), out_(grammar) {
    find_empty_rules();
  }

  Grammar run() {
    // Rules that are added here have their bodies already.
    const size_t count = grammar_.rules.size();
    for (size_t r = 0; r < count; ++r) {
      name_ = grammar_.rules[r].name;
      ExprPtr body = rewrite(grammar_.rules[r].body);
      out_.rules[r].body = std::move(body);
    }
    return std::move(out_);
  }

 private:
  // Each is taken to have the empty text until its body shows that it has not.
  void find_empty_rules() {
    empty_rules_.assign(grammar_.rules.size(), true);
    for (int round = 0; round < kRounds; ++round) {
      shapes_.clear();
      for (size_t r = 0; r < grammar_.rules.size(); ++r) {
        empty_rules_[r] = shape_of(grammar_.rules[r].body).empty;
      }
    }
    shapes_.clear();
  }

  Shape shape_of(const ExprPtr& expr) {
    if (expr->parts.empty()) return shape_of_parts(*expr);
    const auto known = shapes_.find(expr.get());
    if (known != shapes_.end()) return known->second;
    bill({.work = kLookWork + std::ssize(expr->parts)});
    Shape shape = shape_of_parts(*expr);
    shape.size = std::min(shape.size, kMaxSize);
    return shapes_[expr.get()] = shape;
  }

  Shape shape_of_parts(const Expr& expr) {
    switch (expr.kind) {
      case Expr::Kind::literal:
        return {.size = std::ssize(expr.bytes), .empty = expr.bytes.empty()};
      case Expr::Kind::chars: {
        const bool ascii = expr.ranges.empty() || expr.ranges.back().high < 0x80;
        return {.size = 1 + (ascii ? 0 : kRangeStates * std::ssize(expr.ranges))};
      }
      case Expr::Kind::tokens:
        return {.size = 1 + kRangeStates * std::ssize(expr.ranges)};
      case Expr::Kind::rule:
      case Expr::Kind::counted:
        return {.size = 1,
                .empty = expr.min == 0 && empty_rules_[static_cast<size_t>(expr.rule)],
                .calls = true};
      case Expr::Kind::texts:
        return {.size = std::ssize(expr.set->states()),
                .empty = !expr.set->empty() && expr.set->states().front().accepting,
                .calls = expr.lengths != nullptr};
      case Expr::Kind::ahead:
      case Expr::Kind::mark:
      case Expr::Kind::behind:
        return {.empty = true};
      case Expr::Kind::repeat: {
        Shape part = shape_of(expr.parts.front());
        part.size = std::min(part.size * copies(expr), kMaxSize);
        part.empty |= expr.min == 0;
        return part;
      }
      case Expr::Kind::sequence:
      case Expr::Kind::choice:
        break;
    }
    const bool all = expr.kind == Expr::Kind::sequence;
    Shape out{.size = 1, .empty = all};
    for (const ExprPtr& part : expr.parts) {
      const Shape one = shape_of(part);
      out.size += one.size;
      out.calls |= one.calls;
      out.empty = all ? out.empty && one.empty : out.empty || one.empty;
    }
    return out;
  }

  static int64_t copies(const Expr& repeat) {
    return std::max<int64_t>(repeat.max == kUnlimited ? repeat.min + 1 : repeat.max, 1);
  }

  ExprPtr rewrite(const ExprPtr& expr) {
    const bool counts = expr->kind == Expr::Kind::texts && expr->lengths;
    if (expr->parts.empty() && !counts) return expr;
    const auto known = done_.find(expr.get());
    if (known != done_.end()) return known->second;
    bill({.work = kLookWork + std::ssize(expr->parts)});
    return done_[expr.get()] =
               counts ? counted(expr, false, expr->min, expr->max) : rewrite_parts(expr);
  }

  ExprPtr rewrite_parts(const ExprPtr& expr) {
    std::vector<ExprPtr> parts;
    parts.reserve(expr->parts.size());
    for (const ExprPtr& part : expr->parts) parts.push_back(rewrite(part));
    if (expr->kind == Expr::Kind::repeat) {
      if (ExprPtr counter = counter_of(*expr, parts.front())) return counter;
    }
    if (parts == expr->parts) return expr;
    Expr out = *expr;
    out.parts = std::move(parts);
    return std::make_shared<const Expr>(std::move(out));
  }

  // Null where copies do. part: rewritten.
  ExprPtr counter_of(const Expr& repeat, const ExprPtr& part) {
    const Shape before = shape_of(repeat.parts.front());
    if (copies(repeat) <= kFewCopies || (before.empty && before.calls)) return nullptr;
    const int64_t size = before.calls ? shape_of(part).size : before.size;
    if (std::min(size, kMaxSize) * copies(repeat) <= kMaxCopied) return nullptr;
    const int64_t min = before.empty ? 0 : repeat.min;
    ExprPtr times = counted(part, before.empty, std::max<int64_t>(min, 1), repeat.max);
    return min == 0 ? optional(std::move(times)) : times;
  }

  ExprPtr counted(const ExprPtr& body, bool never_empty, int64_t min, int64_t max) {
    Expr out;
    out.kind = Expr::Kind::counted;
    out.min = min;
    out.max = max;
    const auto [at, fresh] =
        rules_.try_emplace(body.get(), static_cast<int32_t>(out_.rules.size()));
    if (fresh) {
      out_.rules.push_back({.name = name_, .body = body, .never_empty = never_empty});
      empty_rules_.push_back(false);
    }
    out.rule = at->second;
    return std::make_shared<const Expr>(std::move(out));
  }

  const Grammar& grammar_;
  Grammar out_;
  std::string name_;
  std::vector<bool> empty_rules_;  // that may have the empty text
  std::unordered_map<const Expr*, Shape> shapes_;
  std::unordered_map<const Expr*, ExprPtr> done_;
  std::unordered_map<const Expr*, int32_t> rules_;  // by their bodies
};

}  // namespace

Grammar with_counters(const Grammar& grammar) {
  return Counters(grammar).run();
}

}  // namespace rbee::grammar
