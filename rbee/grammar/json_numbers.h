#pragma once
// JSON numbers within bounds. Internal to the folder.

#include <cstdint>
#include <functional>
#include <string>

#include "rbee/grammar/expression.h"

namespace rbee::grammar {

// The largest number of 16 digits. Numbers between bounds do not exceed it.
inline constexpr int64_t kMaxJsonInteger = 9'999'999'999'999'999;

// Integers of at most 20 digits, which include all 64-bit integers.
struct JsonIntegers {
  static constexpr __int128 kMost = __int128{99'999'999'999} * 1'000'000'000 + 999'999'999;

  __int128 low = -kMost, high = kMost;

  bool any() const { return low == -kMost && high == kMost; }
};

// A decimal number, and whether it is itself outside.
struct JsonBound {
  bool negative = false;
  int64_t whole = kMaxJsonInteger;  // of the magnitude, before the point
  std::string places;               // after the point, without zeros at the end; at most 16
  bool open = false;

  bool is_zero() const { return whole == 0 && places.empty(); }
  bool given() const { return whole != kMaxJsonInteger || open; }
};

// The shortest decimal that reads back as `value`. Throws unsupported for more than 16 digits
// before or after the point, and for more than 15 digits in all if the bound is open: a neighbour
// with more digits would read back as the bound itself. place, keyword: for messages.
JsonBound json_bound(double value, bool open, const std::string& place, const char* keyword);

struct JsonBounds {
  JsonBound low{.negative = true};
  JsonBound high;
  bool any() const { return !low.given() && !high.given(); }
};

// Its digits. value: from 0 on.
std::string decimal_text(__int128 value);

// least to most digits; most: from 1 on.
using DigitRuns = std::function<ExprPtr(int64_t least, int64_t most)>;
ExprPtr digit_run(int64_t least, int64_t most);

// runs: makes such parts; by default a new one each time.
ExprPtr json_integer(const JsonIntegers& bounds, const DigitRuns& runs = digit_run);
// Any number, with a fraction and, if there are no bounds, with an exponent. Up to 20 digits before
// and after the point; with bounds 16 before it, and with an open bound 15 in all.
ExprPtr json_number(const JsonBounds& bounds, const DigitRuns& runs = digit_run);

}  // namespace rbee::grammar
