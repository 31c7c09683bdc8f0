#include "rbee/grammar/json_multiples.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "rbee/core/error.h"

namespace rbee::grammar {
namespace {

constexpr int64_t kMaxPlaces = 6;
constexpr int64_t kMaxDigits = 16;  // as other numbers
constexpr int64_t kMaxExact = 15;   // of a decimal that a double holds apart from its neighbours
constexpr int64_t kMaxNamed = 4096;
constexpr int64_t kMaxRules = 4096;
constexpr const char* kTooMany = "multipleOf has too many remainders without a bound on both sides";

[[noreturn]] void refuse(const std::string& place, const std::string& why) {
  fail(Code::unsupported, "json_schema", place, ": ", why);
}

int64_t power_of_ten(int64_t exponent) {
  int64_t out = 1;
  for (int64_t i = 0; i < exponent; ++i) out *= 10;
  return out;
}

// numerator / 10^places as a text without zeros at its end.
std::string decimal(int64_t numerator, int64_t places) {
  std::string digits = std::to_string(std::abs(numerator));
  const auto behind = static_cast<size_t>(places);
  if (digits.size() <= behind) digits.insert(0, behind + 1 - digits.size(), '0');
  std::string out = cat(numerator < 0 ? "-" : "", digits.substr(0, digits.size() - behind));
  std::string rest = digits.substr(digits.size() - behind);
  while (!rest.empty() && rest.back() == '0') rest.pop_back();
  return rest.empty() ? out : cat(out, ".", rest);
}

// Multiples from 0 on, digit by digit: a rule for each remainder of what has been written and each
// count of its digits.
class Remainders {
 public:
  Remainders(JsonRules& rules, JsonStep step, const std::string& place)
      : rules_(rules), step_(step), place_(place) {}

  // zero: whether 0 itself is one of them.
  ExprPtr expr(bool zero) {
    std::vector<ExprPtr> ways = digits(0, 0, false, '1');
    if (zero) ways.push_back(literal("0"));
    // "0." with something behind it.
    if (step_.places > 0) ways.push_back(sequence({literal("0."), rule(behind_point(0, 0, true))}));
    return choice(std::move(ways));
  }

 private:
  struct Key {
    int64_t remainder, digits;
    bool fraction, zero;
    auto operator<=>(const Key&) const = default;
  };

  bool is_multiple(int64_t remainder, int64_t places) const {
    return remainder * power_of_ten(step_.places - places) % step_.numerator == 0;
  }

  // Ways to write one more digit from `first` on.
  std::vector<ExprPtr> digits(int64_t remainder, int64_t count, bool fraction, char first,
                              bool zero = false) {
    std::map<int32_t, std::vector<CharRange>> ways;
    for (char digit = first; digit <= '9'; ++digit) {
      const int64_t next = (remainder * 10 + (digit - '0')) % step_.numerator;
      const int32_t to = fraction ? behind_point(next, count + 1, zero && digit == '0')
                                  : before_point(next, count + 1);
      const auto code = static_cast<char32_t>(digit);
      ways[to].push_back({code, code});
    }
    std::vector<ExprPtr> out;
    out.reserve(ways.size());
    for (auto& [to, ranges] : ways) out.push_back(sequence({chars(std::move(ranges)), rule(to)}));
    return out;
  }

  int32_t before_point(int64_t remainder, int64_t count) {
    return made({remainder, count, false, false}, [&] {
      std::vector<ExprPtr> ways;
      if (is_multiple(remainder, 0)) ways.push_back(sequence({}));
      if (count < most_digits_)
        ways = joined(std::move(ways), digits(remainder, count, false, '0'));
      if (step_.places > 0) {
        ways.push_back(sequence({literal("."), rule(behind_point(remainder, 0, false))}));
      }
      return choice(std::move(ways));
    });
  }

  // zero: nothing but zeros so far, which "0" says already.
  int32_t behind_point(int64_t remainder, int64_t count, bool zero) {
    return made({remainder, count, true, zero}, [&] {
      std::vector<ExprPtr> ways;
      if (count > 0 && !zero && is_multiple(remainder, count)) ways.push_back(sequence({}));
      if (count < step_.places) {
        ways = joined(std::move(ways), digits(remainder, count, true, '0', zero));
      }
      return choice(std::move(ways));
    });
  }

  static std::vector<ExprPtr> joined(std::vector<ExprPtr> a, const std::vector<ExprPtr>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }

  template <typename Body>
  int32_t made(Key key, const Body& body) {
    const auto found = rules_of_.find(key);
    if (found != rules_of_.end()) return found->second;
    if (std::ssize(rules_of_) >= kMaxRules) {
      refuse(place_, kTooMany);
    }
    const int32_t rule = rules_.reserve(place_);
    rules_of_.emplace(key, rule);
    rules_.define(rule, body());
    return rule;
  }

  JsonRules& rules_;
  const JsonStep step_;
  const int64_t most_digits_ = step_.places == 0 ? kMaxDigits : kMaxExact - step_.places;
  const std::string& place_;
  std::map<Key, int32_t> rules_of_;
};

int64_t floor_div(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && a < 0 ? 1 : 0);
}

// Multiples from first to last, counted in steps.
ExprPtr named(JsonStep step, int64_t first, int64_t last) {
  std::vector<ExprPtr> ways;
  for (int64_t i = first; i <= last; ++i) {
    ways.push_back(literal(decimal(i * step.numerator, step.places)));
  }
  return choice(std::move(ways));
}

JsonBound negated(JsonBound bound) {
  bound.negative = !bound.negative;
  return bound;
}

// The largest n with n / 10^places not above the bound, nor on it where that is open.
int64_t most_parts(const JsonBound& bound, int64_t places) {
  const auto kept = static_cast<size_t>(places);
  std::string digits = bound.places.substr(0, kept);
  digits.resize(kept, '0');
  const int64_t magnitude =
      bound.whole * power_of_ten(places) + (digits.empty() ? 0 : std::stoll(digits));
  const bool exact = bound.places.size() <= kept;
  const int64_t parts = bound.negative ? -magnitude - (exact ? 0 : 1) : magnitude;
  return exact && bound.open ? parts - 1 : parts;
}

}  // namespace

JsonStep json_step(double value, bool integers, const std::string& place) {
  check(value > 0, "json_schema", place, ": multipleOf must be a number above 0");
  for (int64_t places = 0; places <= kMaxPlaces; ++places) {
    const auto scale = static_cast<double>(power_of_ten(places));
    const double scaled = value * scale, whole = std::round(scaled);
    if (whole > static_cast<double>(kMaxJsonInteger)) break;
    // Of the numbers with so many places it is the one that the schema's text means.
    if (whole / scale != value) continue;
    const auto numerator = static_cast<int64_t>(whole);
    if (!integers) return {numerator, places};
    return {numerator / std::gcd(numerator, power_of_ten(places)), 0};
  }
  refuse(place, "multipleOf has more than six places behind the point or more than 16 digits");
}

ExprPtr json_multiples(JsonRules& rules, JsonStep step, const JsonBounds& bounds,
                       const std::string& place) {
  const int64_t scale = power_of_ten(step.places);
  const bool from = bounds.low.given(), to = bounds.high.given();
  for (const JsonBound* bound : {&bounds.low, &bounds.high}) {
    if (bound->given() && bound->whole > kMaxJsonInteger / scale) {
      refuse(place, "multipleOf beside a bound of so many digits is not supported");
    }
  }
  // Counted in parts of the step's last place.
  const int64_t low = from ? -most_parts(negated(bounds.low), step.places) : 0;
  const int64_t high = to ? most_parts(bounds.high, step.places) : 0;
  const int64_t first = -floor_div(-low, step.numerator), last = floor_div(high, step.numerator);
  if (from && to) {
    check(first <= last, "json_schema", place, ": no multiple lies between the bounds");
    if (last - first < kMaxNamed) return named(step, first, last);
    refuse(place, cat("more than ", kMaxNamed, " multiples lie between the bounds"));
  }
  if ((from && first != 0 && first != 1) || (to && last != 0 && last != -1)) {
    refuse(place, "multipleOf beside one bound other than 0 is not supported; give both");
  }
  if (step.numerator > kMaxRules) refuse(place, kTooMany);
  Remainders remainders(rules, step, place);
  std::vector<ExprPtr> ways;
  if (!to) ways.push_back(remainders.expr(first == 0));
  if (!from) ways.push_back(sequence({literal("-"), remainders.expr(false)}));
  if (to && last == 0) ways.push_back(literal("0"));
  return choice(std::move(ways));
}

}  // namespace rbee::grammar
