#pragma once
// Integers of any size. Templates can pass on, compare and write integers beyond 64 bits;
// arithmetic on them is an error of the template.

#include <string>
#include <string_view>

#include "rbee/text/template/value.h"

namespace rbee::text::jinja {

// decimal: digits, perhaps with a sign. Throws above 4300 digits, Python's limit.
Value make_integer(Heap& heap, std::string_view decimal);
// Drops the fraction. Throws if the value is not finite.
Value make_integer(Heap& heap, double value);

// The digits of an integer, with "-" if it is negative.
std::string decimal_of(const Value& integer);

// -1, 0 or 1; nothing if one is NaN. Exact for integers beyond 64 bits.
std::optional<int> order_numbers(const Value& a, const Value& b);

[[noreturn]] void raise_overflow();

}  // namespace rbee::text::jinja
