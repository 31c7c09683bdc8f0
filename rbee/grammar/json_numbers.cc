#include "rbee/grammar/json_numbers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include "rbee/core/error.h"

namespace rbee::grammar {
namespace {

constexpr int64_t kMaxFraction = 20;  // shortest texts of doubles near 1 have 17
constexpr int64_t kMaxBound = 16;     // digits of a bound before and after its point
constexpr int64_t kMaxExact = 15;     // of a decimal that a double holds apart from others

ExprPtr digit(char low = '0', char high = '9') {
  return chars({{static_cast<char32_t>(low), static_cast<char32_t>(high)}});
}

// Parts of numbers. `runs`: of digits, for all of them.
class NumberParts {
 public:
  explicit NumberParts(const DigitRuns& runs) : runs_(runs) {}

  // Integers without sign; none when low is above high.
  ExprPtr magnitudes(__int128 low, __int128 high) const {
    if (low > high) return choice({});
    const std::string first = decimal_text(low), last = decimal_text(high);
    if (first.size() == last.size()) return same_length(first, last);
    std::vector<ExprPtr> ways{same_length(first, std::string(first.size(), '9')),
                              same_length(cat("1", std::string(last.size() - 1, '0')), last)};
    // Those of the lengths between are one way, so that few ways go side by side.
    const auto least = static_cast<int64_t>(first.size()), most = std::ssize(last) - 2;
    if (least <= most) ways.push_back(sequence({digit('1'), digits(least, most)}));
    return choice(std::move(ways));
  }

  ExprPtr fraction(int64_t most) const {
    if (most < 1) return sequence({});
    return optional(sequence({literal("."), digits(1, most)}));
  }

  ExprPtr digits(int64_t least, int64_t most) const {
    return most < 1 ? sequence({}) : runs_(least, most);
  }
  ExprPtr digits(int64_t most) const { return digits(0, most); }

 private:
  // Texts of digits from `low` to `high`, which have the same length.
  ExprPtr same_length(const std::string& low, const std::string& high) const {
    if (low.empty()) return sequence({});
    const auto rest = std::ssize(low) - 1;
    if (low[0] == high[0]) {
      return sequence({digit(low[0], low[0]), same_length(low.substr(1), high.substr(1))});
    }
    const std::string zeros(static_cast<size_t>(rest), '0'), nines(static_cast<size_t>(rest), '9');
    std::vector<ExprPtr> ways;
    char first = low[0], last = high[0];
    if (low.substr(1) != zeros) {
      ways.push_back(sequence({digit(first, first), same_length(low.substr(1), nines)}));
      ++first;
    }
    if (high.substr(1) != nines) {
      ways.push_back(sequence({digit(last, last), same_length(zeros, high.substr(1))}));
      --last;
    }
    if (first <= last) ways.push_back(sequence({digit(first, last), digits(rest, rest)}));
    return choice(std::move(ways));
  }

  const DigitRuns& runs_;
};

// The text after a whole part: nothing, or a point and up to `most` digits, so that these
// are between the bounds' digits after the point.
class Fractions : NumberParts {
 public:
  // most: above it neighbours of an open bound are read as the bound.
  Fractions(const DigitRuns& runs, int64_t most) : NumberParts(runs), most_(most) {}

  ExprPtr at_least(const JsonBound& low) const {
    if (low.places.empty() && !low.open) return fraction(most_);
    return sequence({literal("."), from(low, 0)});
  }

  ExprPtr at_most(const JsonBound& high) const {
    if (high.places.empty()) return high.open ? choice({}) : optional(zeros());
    return optional(sequence({literal("."), to(high, 0, false)}));
  }

  ExprPtr between(const JsonBound& low, const JsonBound& high) const {
    if (low.places.empty() && !low.open) return at_most(high);
    return sequence({literal("."), both(low, high, 0)});
  }

 private:
  ExprPtr zeros() const { return sequence({literal("."), repeat(digit('0', '0'), 1, 2)}); }

  // Some digit but 0 among `left`.
  ExprPtr above_zero(int64_t left) const {
    if (left < 1) return choice({});
    const int64_t half = left / 2;
    return sequence({repeat(digit('0', '0'), 0, half), digit('1', '9'), digits(left - half - 1)});
  }

  // Digits from `at` on; those before are the bound's.
  ExprPtr from(const JsonBound& low, size_t at) const {
    const int64_t left = most_ - static_cast<int64_t>(at);
    if (at == low.places.size()) return low.open ? above_zero(left) : digits(left);
    const char own = low.places[at];
    std::vector<ExprPtr> ways{sequence({digit(own, own), from(low, at + 1)})};
    if (own < '9') {
      ways.push_back(sequence({digit(static_cast<char>(own + 1)), digits(left - 1)}));
    }
    return choice(std::move(ways));
  }

  // above_zero: not only zeros. The text may end after any digit of the bound except the last.
  ExprPtr to(const JsonBound& high, size_t at, bool above_zero_alone) const {
    const int64_t left = most_ - static_cast<int64_t>(at);
    if (at == high.places.size()) {
      return high.open ? choice({}) : repeat(digit('0', '0'), 0, 2);
    }
    const char own = high.places[at];
    const bool still = above_zero_alone && own == '0';
    std::vector<ExprPtr> ways{sequence({digit(own, own), to(high, at + 1, still)})};
    if (at > 0 && !above_zero_alone) ways.push_back(sequence({}));
    if (own > '0') {
      const char below = static_cast<char>(own - 1);
      if (!above_zero_alone) {
        ways.push_back(sequence({digit('0', below), digits(left - 1)}));
      } else {
        ways.push_back(sequence({digit('0', '0'), above_zero(left - 1)}));
        if (below > '0') ways.push_back(sequence({digit('1', below), digits(left - 1)}));
      }
    }
    return choice(std::move(ways));
  }

  ExprPtr both(const JsonBound& low, const JsonBound& high, size_t at) const {
    const bool low_ends = at == low.places.size(), high_ends = at == high.places.size();
    if (low_ends && high_ends) {
      return low.open || high.open ? choice({}) : repeat(digit('0', '0'), 0, 2);
    }
    if (low_ends) return to(high, at, low.open);
    const char first = low.places[at], last = high.places[at];
    if (first == last) return sequence({digit(first, first), both(low, high, at + 1)});
    std::vector<ExprPtr> ways{sequence({digit(first, first), from(low, at + 1)}),
                              sequence({digit(last, last), to(high, at + 1, false)})};
    if (first + 1 < last) {
      ways.push_back(sequence({digit(static_cast<char>(first + 1), static_cast<char>(last - 1)),
                               digits(most_ - static_cast<int64_t>(at) - 1)}));
    }
    return choice(std::move(ways));
  }

  int64_t most_;
};

// Digits behind the point that keep what is beside the bound apart from it.
int64_t places_beside(const JsonBound& bound) {
  if (!bound.open) return kMaxFraction;
  return kMaxExact - static_cast<int64_t>(std::to_string(bound.whole).size());
}

// Magnitudes of numbers from low to high.
ExprPtr fractional(const JsonBound& low, const JsonBound& high, const DigitRuns& runs) {
  const NumberParts parts(runs);
  const bool next = low.whole + 1 == high.whole;  // then what is above low is beside high, too
  const int64_t above_low = std::min(places_beside(low), next ? places_beside(high) : kMaxFraction);
  const Fractions above(runs, above_low), below(runs, places_beside(high));
  if (low.whole == high.whole) {
    const Fractions near(runs, std::min(places_beside(low), places_beside(high)));
    return sequence({parts.magnitudes(low.whole, low.whole), near.between(low, high)});
  }
  // The last whole part before an open bound stands beside it.
  return choice({sequence({parts.magnitudes(low.whole, low.whole), above.at_least(low)}),
                 sequence({parts.magnitudes(low.whole + 1, high.whole - 1),
                           parts.fraction(places_beside(high))}),
                 sequence({parts.magnitudes(high.whole, high.whole), below.at_most(high)})});
}

}  // namespace

JsonBound json_bound(double value, bool open, const std::string& place, const char* keyword) {
  std::array<char, 512> text;  // a double has at most 309 digits before the point, or 1074 after
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), std::fabs(value),
                                          std::chars_format::fixed);
  const std::string_view digits(text.data(), static_cast<size_t>(end - text.data()));
  const size_t point = std::min(digits.find('.'), digits.size());
  const std::string_view places = digits.substr(std::min(point + 1, digits.size()));
  const bool fits = error == std::errc() && point <= kMaxBound && places.size() <= kMaxBound;
  const bool apart = places.empty() || !open || point + places.size() <= kMaxExact;
  if (!fits || !apart) {
    fail(Code::unsupported, "json_schema", place, ": ", keyword, " is beyond 16 digits before or ",
         "behind the point, or 15 in all beside an open bound");
  }
  JsonBound bound{.negative = value < 0, .places = std::string(places), .open = open};
  std::from_chars(digits.data(), digits.data() + point, bound.whole);
  return bound;
}

std::string decimal_text(__int128 value) {
  std::string out;
  do {
    out.insert(out.begin(), static_cast<char>('0' + static_cast<int>(value % 10)));
    value /= 10;
  } while (value > 0);
  return out;
}

ExprPtr digit_run(int64_t least, int64_t most) {
  return repeat(digit(), least, most);
}

ExprPtr json_integer(const JsonIntegers& bounds, const DigitRuns& runs) {
  const auto [low, high] = bounds;
  const NumberParts parts(runs);
  std::vector<ExprPtr> ways;
  if (high >= 0) ways.push_back(parts.magnitudes(std::max<__int128>(low, 0), high));
  if (low < 0) {
    ways.push_back(sequence({literal("-"), parts.magnitudes(std::max<__int128>(-high, 1), -low)}));
  }
  return choice(std::move(ways));
}

ExprPtr json_number(const JsonBounds& bounds, const DigitRuns& runs) {
  if (bounds.any()) {
    const NumberParts parts(runs);
    const ExprPtr exponent =
        sequence({chars({{'e', 'e'}, {'E', 'E'}}), optional(chars({{'+', '+'}, {'-', '-'}})),
                  repeat(digit(), 1, 2)});
    return sequence({optional(literal("-")), parts.magnitudes(0, JsonIntegers::kMost),
                     parts.fraction(kMaxFraction), optional(exponent)});
  }
  const auto& [low, high] = bounds;
  std::vector<ExprPtr> ways;
  const JsonBound zero{.whole = 0}, above_zero{.whole = 0, .open = true};
  if (!high.negative && !(high.is_zero() && high.open)) {
    ways.push_back(fractional(low.negative ? zero : low, high, runs));
  }
  if (low.negative) {
    // Zero has no sign.
    const bool from_zero = !high.negative;
    ways.push_back(sequence({literal("-"), fractional(from_zero ? above_zero : high, low, runs)}));
  }
  return choice(std::move(ways));
}

}  // namespace rbee::grammar
