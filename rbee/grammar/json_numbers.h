#pragma once
// Numbers of JSON within bounds. Internal to the folder.

#include <cstdint>
#include <optional>

#include "rbee/grammar/expression.h"

namespace rbee::grammar {

// The largest number of 16 digits; what is beyond is not written.
inline constexpr int64_t kMaxJsonInteger = 9'999'999'999'999'999;

struct JsonBounds {
  int64_t low = -kMaxJsonInteger;
  int64_t high = kMaxJsonInteger;
  bool open_low = false;  // low itself is outside
  bool open_high = false;
  bool any() const {
    return low == -kMaxJsonInteger && high == kMaxJsonInteger && !open_low && !open_high;
  }
};

// An integer from low to high. The open sides are taken off by the caller.
ExprPtr json_integer(const JsonBounds& bounds);
// Any number, with a fraction and, without bounds, with an exponent.
ExprPtr json_number(const JsonBounds& bounds);

}  // namespace rbee::grammar
