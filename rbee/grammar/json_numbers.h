#pragma once
// Numbers of JSON within bounds. Internal to the folder.

#include <cstdint>
#include <string>

#include "rbee/grammar/expression.h"

namespace rbee::grammar {

// The largest number of 16 digits; what is beyond is not written.
inline constexpr int64_t kMaxJsonInteger = 9'999'999'999'999'999;

// A decimal number, and whether it is itself outside.
struct JsonBound {
  bool negative = false;
  int64_t whole = kMaxJsonInteger;  // of the magnitude, in front of the point
  std::string places;               // behind it, without zeros at the end; at most 16
  bool open = false;

  int64_t signed_whole() const { return negative ? -whole : whole; }
  bool is_zero() const { return whole == 0 && places.empty(); }
  bool given() const { return whole != kMaxJsonInteger || open; }
};

// The shortest decimal that is read back as `value`. Throws unsupported for more than 16 digits
// before or behind the point, and behind an open bound for more than 15 in all: neighbours of more
// digits are read as the bound itself. place, keyword: of messages.
JsonBound json_bound(double value, bool open, const std::string& place, const char* keyword);

struct JsonBounds {
  JsonBound low{.negative = true};
  JsonBound high;
  bool any() const { return !low.given() && !high.given(); }
};

// An integer from low to high, which are whole and closed.
ExprPtr json_integer(const JsonBounds& bounds);
// Any number, with a fraction and, without bounds, with an exponent.
ExprPtr json_number(const JsonBounds& bounds);

}  // namespace rbee::grammar
