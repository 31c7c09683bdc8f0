#pragma once
// JSON numbers with all digits of their text. Internal to the folder.

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "rbee/grammar/json_multiples.h"

namespace rbee::grammar {

class JsonDecimal {
 public:
  // text: a number as JSON has it.
  explicit JsonDecimal(std::string_view text);

  bool is_integer() const { return digits_.empty() || exponent_ >= 0; }
  // The largest integer that is not above it; for more than 20 digits, some integer of that size.
  __int128 floor() const;
  JsonDecimal negated() const;
  bool is_multiple(const JsonStep& step) const;
  // Equal for equal numbers.
  std::string text() const;
  std::strong_ordering operator<=>(const JsonDecimal& other) const;
  bool operator==(const JsonDecimal& other) const = default;

 private:
  std::strong_ordering compare_sizes(const JsonDecimal& other) const;

  bool negative_ = false;
  std::string digits_;    // without zeros at both ends; empty for zero
  int64_t exponent_ = 0;  // of the last digit, to 10
};

}  // namespace rbee::grammar
