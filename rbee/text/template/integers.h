#pragma once
// Integers of any size. Those beyond 64 bits are passed on, compared and written as they are;
// arithmetic on them is an error of the template.

#include <string>
#include <string_view>

#include "rbee/text/template/value.h"

namespace rbee::text::jinja {

// decimal: digits, perhaps with a sign before them. Throws beyond 4300 digits, Python's limit.
Value make_integer(Heap& heap, std::string_view decimal);
// Without its fraction. Throws for what is not finite.
Value make_integer(Heap& heap, double value);

// The digits of an integer, a "-" before them when it is negative.
std::string decimal_of(const Value& integer);

// -1, 0 or 1; nothing when one is NaN. Exact where an integer beyond 64 bits is compared.
std::optional<int> order_numbers(const Value& a, const Value& b);

[[noreturn]] void raise_overflow();

}  // namespace rbee::text::jinja
