#include "rbee/grammar/json_multiples.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "rbee/core/error.h"
#include "rbee/grammar/budget.h"
#include "rbee/grammar/schema_merge.h"
#include "rbee/grammar/text_set.h"

namespace rbee::grammar {
namespace {

constexpr int64_t kMaxPlaces = 12;
constexpr int64_t kMaxExact = 15;  // digits of a decimal that a double holds apart from neighbours
constexpr int64_t kMaxNamed = 4096;
constexpr int64_t kMaxStates = 8000;
constexpr int64_t kStateBytes = 256;  // with its edges and its entry in the index

[[noreturn]] void refuse(const std::string& place, const std::string& why) {
  fail(Code::unsupported, "json_schema", place, ": ", why);
}

[[noreturn]] void none_fits(const std::string& place) {
  throw NothingFits(place, "no multiple lies between the bounds");
}

// Up to 10^18.
int64_t power_of_ten(int64_t exponent) {
  int64_t out = 1;
  for (int64_t i = 0; i < std::min<int64_t>(exponent, 18); ++i) out *= 10;
  return out;
}

int64_t exponent_of(int64_t prime, int64_t value) {
  int64_t out = 0;
  for (; value % prime == 0; value /= prime) ++out;
  return out;
}

// numerator / 10^places as a text without zeros at its end.
std::string decimal(__int128 numerator, int64_t places) {
  std::string digits = decimal_text(numerator < 0 ? -numerator : numerator);
  const auto behind = static_cast<size_t>(places);
  if (digits.size() <= behind) digits.insert(0, behind + 1 - digits.size(), '0');
  std::string out = cat(numerator < 0 ? "-" : "", digits.substr(0, digits.size() - behind));
  std::string rest = digits.substr(digits.size() - behind);
  while (!rest.empty() && rest.back() == '0') rest.pop_back();
  return rest.empty() ? out : cat(out, ".", rest);
}

// Digits, and a point among them, that are a multiple. Texts that are no numbers are among them.
class Remainders {
 public:
  Remainders(JsonStep step, const std::string& place) : step_(step), place_(place) {
    const int64_t twos = exponent_of(2, step.numerator), fives = exponent_of(5, step.numerator);
    ends_ = std::max(twos, fives);
    rest_ = step.numerator;
    for (int64_t i = 0; i < twos; ++i) rest_ /= 2;
    for (int64_t i = 0; i < fives; ++i) rest_ /= 5;
  }

  TextSet texts() {
    find(0, kBefore);
    for (size_t i = 0; i < found_.size(); ++i) {
      bill({.work = 10 * (1 + ends_), .bytes = kStateBytes});
      if (std::ssize(found_) > kMaxStates) refuse(place_, "multipleOf has too many remainders");
      const auto [remainder, left] = found_[i];
      DfaState state;
      const int64_t zeros = left == kBefore ? step_.places : left;
      state.accepting = modulo(__int128{remainder} * power_of_ten(zeros)) == 0;
      if (left == kBefore && step_.places > 0) add(state, '.', find(remainder, step_.places));
      for (char digit = '0'; digit <= '9' && left != 0; ++digit) {
        const int64_t next = modulo(__int128{remainder} * 10 + (digit - '0'));
        add(state, digit, find(next, left == kBefore ? kBefore : left - 1));
      }
      states_.push_back(std::move(state));
    }
    return TextSet(std::move(states_));
  }

 private:
  static constexpr int64_t kBefore = -1;  // the point, in place of digits that may still come

  int64_t modulo(__int128 value) const { return static_cast<int64_t>(value % step_.numerator); }

  static void add(DfaState& state, char byte, int32_t to) {
    const auto code = static_cast<uint8_t>(byte);
    const bool next =
        !state.bytes.empty() && state.bytes.back().to == to && state.bytes.back().high + 1 == code;
    if (next) {
      state.bytes.back().high = code;
    } else {
      state.bytes.push_back({code, code, to});
    }
  }

  // Remainders with the same are alike: what has to end the text for each count of digits that is
  // so small that this does not come to all ends, and what is left of them behind more digits.
  std::vector<int64_t> meaning(int64_t remainder, int64_t left) const {
    std::vector<int64_t> out{left, remainder % rest_};
    int64_t shifted = remainder;
    for (int64_t count = 0; count < ends_; ++count) {
      const int64_t end = shifted == 0 ? 0 : step_.numerator - shifted;
      out.push_back(end < power_of_ten(count) ? end : -1);
      shifted = modulo(__int128{shifted} * 10);
    }
    return out;
  }

  int32_t find(int64_t remainder, int64_t left) {
    const auto [at, fresh] =
        index_.try_emplace(meaning(remainder, left), static_cast<int32_t>(found_.size()));
    if (fresh) found_.emplace_back(remainder, left);
    return at->second;
  }

  const JsonStep step_;
  const std::string& place_;
  int64_t ends_;  // so many digits at the end say whether the twos and fives divide
  int64_t rest_;  // the step without these
  std::map<std::vector<int64_t>, int32_t> index_;
  std::vector<std::pair<int64_t, int64_t>> found_;  // a remainder, and digits that may still come
  std::vector<DfaState> states_;
};

__int128 floor_div(__int128 a, __int128 b) {
  return a / b - (a % b != 0 && a < 0 ? 1 : 0);
}

// Multiples from first to last, counted in steps.
ExprPtr named(JsonStep step, __int128 first, __int128 last) {
  std::vector<ExprPtr> ways;
  for (__int128 i = first; i <= last; ++i) {
    ways.push_back(literal(decimal(i * step.numerator, step.places)));
  }
  return choice(std::move(ways));
}

JsonBound negated(JsonBound bound) {
  bound.negative = !bound.negative;
  return bound;
}

// The largest n with n / 10^places not above the bound, nor on it where that is open.
__int128 most_parts(const JsonBound& bound, int64_t places) {
  const auto kept = static_cast<size_t>(places);
  std::string digits = bound.places.substr(0, kept);
  digits.resize(kept, '0');
  const __int128 magnitude =
      __int128{bound.whole} * power_of_ten(places) + (digits.empty() ? 0 : std::stoll(digits));
  const bool exact = bound.places.size() <= kept;
  const __int128 parts = bound.negative ? -magnitude - (exact ? 0 : 1) : magnitude;
  return exact && bound.open ? parts - 1 : parts;
}

// Numbers with a sign. positive, negative: magnitudes above zero; null: none.
struct Signed {
  ExprPtr positive, negative;
  bool same = false;  // both
  bool zero = false;
};

ExprPtr with_signs(const Signed& numbers) {
  std::vector<ExprPtr> ways;
  if (numbers.zero) ways.push_back(literal("0"));
  if (numbers.same) {
    ways.push_back(sequence({optional(literal("-")), numbers.positive}));
  } else {
    if (numbers.positive) ways.push_back(numbers.positive);
    if (numbers.negative) ways.push_back(sequence({literal("-"), numbers.negative}));
  }
  return choice(std::move(ways));
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
  refuse(place, cat("multipleOf has more than ", kMaxPlaces, " places behind the point or more ",
                    "than 16 digits"));
}

ExprPtr json_multiples(int64_t step, JsonIntegers bounds, const std::string& place, int64_t& work) {
  if (bounds.any()) bounds = {.low = -kMaxJsonInteger, .high = kMaxJsonInteger};
  const auto [low, high] = bounds;
  const __int128 first = -floor_div(-low, step), last = floor_div(high, step);
  if (first > last) none_fits(place);
  if (last - first < kMaxNamed) return named({.numerator = step}, first, last);
  const TextSet all = Remainders({.numerator = step}, place).texts();
  const auto between = [&](__int128 least, __int128 most) {
    const TextSet some(json_integer({.low = least, .high = most}), place, work);
    return TextSet::both(all, some, work).expr();
  };
  Signed out{.same = low == -high, .zero = low <= 0 && high >= 0};
  if (high > 0) out.positive = between(std::max<__int128>(low, 1), high);
  if (low < 0 && !out.same) out.negative = between(std::max<__int128>(-high, 1), -low);
  return with_signs(out);
}

ExprPtr json_multiples(JsonStep step, const JsonBounds& bounds, const std::string& place,
                       int64_t& work) {
  const auto& [low, high] = bounds;
  if (low.given() && high.given()) {
    const __int128 most = floor_div(most_parts(high, step.places), step.numerator);
    const __int128 least = -floor_div(most_parts(negated(low), step.places), step.numerator);
    if (least > most) none_fits(place);
    if (most - least < kMaxNamed) return named(step, least, most);
  }
  const int64_t whole = power_of_ten(kMaxExact - step.places) - 1;
  const TextSet all = Remainders(step, place).texts();
  const JsonBound above_zero{.whole = 0, .open = true};
  const auto between = [&](JsonBound least, JsonBound most) {
    least.negative = most.negative = false;
    if (least.whole > whole) refuse(place, "multipleOf beside a bound of so many digits");
    if (most.whole > whole) most = {.whole = whole, .places = {}};
    const TextSet some(json_number({.low = least, .high = most}), place, work);
    return TextSet::both(all, some, work).expr();
  };
  const auto is_above = [](const JsonBound& bound) { return !bound.negative && !bound.is_zero(); };
  const auto may_be_zero = [](const JsonBound& bound) { return bound.is_zero() && !bound.open; };
  Signed out{.same = !low.given() && !high.given(),
             .zero = (low.negative || may_be_zero(low)) && (is_above(high) || may_be_zero(high))};
  if (is_above(high)) out.positive = between(is_above(low) ? low : above_zero, high);
  if (low.negative && !out.same) out.negative = between(high.negative ? high : above_zero, low);
  return with_signs(out);
}

}  // namespace rbee::grammar
