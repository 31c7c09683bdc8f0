#pragma once
// The numbers that a setting of a model's file may have. Models compute in f32, so what f32 does
// not hold is refused where the file is read.

#include <limits>
#include <string>

#include "rbee/core/cat.h"

namespace rbee::io {

// Both ends included; neither infinities nor NaN are within.
struct NumberRange {
  double lowest = -double{std::numeric_limits<float>::max()};
  double highest = double{std::numeric_limits<float>::max()};

  bool holds(double number) const { return number >= lowest && number <= highest; }
  // "a number from 0 to 1"
  std::string describe() const {
    return cat("a number from ", static_cast<float>(lowest), " to ", static_cast<float>(highest));
  }
};

// From the smallest number of f32 that has all its digits.
inline constexpr NumberRange kAboveZero{.lowest = double{std::numeric_limits<float>::min()}};
inline constexpr NumberRange kFromZero{.lowest = 0};
inline constexpr NumberRange kZeroToOne{.lowest = 0, .highest = 1};

}  // namespace rbee::io
