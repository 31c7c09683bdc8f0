#include "rbee/grammar/json_numbers.h"

#include <algorithm>
#include <string>

namespace rbee::grammar {
namespace {

constexpr int64_t kMaxFraction = 16;

ExprPtr digit(char low = '0', char high = '9') {
  return chars({{static_cast<char32_t>(low), static_cast<char32_t>(high)}});
}

// Texts of digits from `low` to `high`, which have the same length.
ExprPtr same_length(const std::string& low, const std::string& high) {
  if (low.empty()) return sequence({});
  const auto rest = static_cast<int64_t>(low.size()) - 1;
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
  if (first <= last) ways.push_back(sequence({digit(first, last), repeat(digit(), rest, rest)}));
  return choice(std::move(ways));
}

// Integers without sign; none when low is above high.
ExprPtr magnitudes(int64_t low, int64_t high) {
  std::vector<ExprPtr> ways;
  while (low <= high) {
    const std::string from = std::to_string(low);
    const std::string nines(from.size(), '9');
    const int64_t end = std::min<int64_t>(std::stoll(nines), high);
    ways.push_back(same_length(from, std::to_string(end)));
    low = end + 1;
  }
  return choice(std::move(ways));
}

ExprPtr fraction() {
  return sequence({literal("."), repeat(digit(), 1, kMaxFraction)});
}

// Numbers without sign from low to high.
ExprPtr fractional(int64_t low, int64_t high, bool open_low, bool open_high) {
  const ExprPtr zeros = optional(sequence({literal("."), repeat(digit('0', '0'), 1, 2)}));
  std::vector<ExprPtr> ways;
  const int64_t inner = open_low ? low + 1 : low;
  ways.push_back(sequence({magnitudes(inner, high - 1), optional(fraction())}));
  if (open_low && low < high) {
    const ExprPtr above = sequence({literal("."), repeat(digit('0', '0'), 0, kMaxFraction / 2),
                                    digit('1', '9'), repeat(digit(), 0, kMaxFraction / 2 - 1)});
    ways.push_back(sequence({magnitudes(low, low), above}));
  }
  const bool last = !open_high && (high > low || !open_low);
  if (last) ways.push_back(sequence({magnitudes(high, high), zeros}));
  return choice(std::move(ways));
}

}  // namespace

ExprPtr json_integer(const JsonBounds& bounds) {
  std::vector<ExprPtr> ways;
  if (bounds.high >= 0) ways.push_back(magnitudes(std::max<int64_t>(bounds.low, 0), bounds.high));
  if (bounds.low < 0) {
    const int64_t least = std::max<int64_t>(-bounds.high, 1);
    ways.push_back(sequence({literal("-"), magnitudes(least, -bounds.low)}));
  }
  return choice(std::move(ways));
}

ExprPtr json_number(const JsonBounds& bounds) {
  if (bounds.any()) {
    const ExprPtr exponent =
        sequence({chars({{'e', 'e'}, {'E', 'E'}}), optional(chars({{'+', '+'}, {'-', '-'}})),
                  repeat(digit(), 1, 2)});
    return sequence({optional(literal("-")), magnitudes(0, kMaxJsonInteger), optional(fraction()),
                     optional(exponent)});
  }
  std::vector<ExprPtr> ways;
  const bool low_is_negative = bounds.low < 0;
  if (bounds.high > 0 || (bounds.high == 0 && !bounds.open_high)) {
    const bool open = bounds.open_low && !low_is_negative;
    ways.push_back(
        fractional(std::max<int64_t>(bounds.low, 0), bounds.high, open, bounds.open_high));
  }
  if (low_is_negative) {
    const bool from_zero = bounds.high >= 0;
    const int64_t least = from_zero ? 0 : -bounds.high;
    // Zero has no sign.
    ways.push_back(
        sequence({literal("-"),
                  fractional(least, -bounds.low, from_zero || bounds.open_high, bounds.open_low)}));
  }
  return choice(std::move(ways));
}

}  // namespace rbee::grammar
