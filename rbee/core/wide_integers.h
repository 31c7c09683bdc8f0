#pragma once
// Carries numbers through a JSON tree that would round them: integers beyond 64 bits (tools'
// schemas have bounds such as 2^64, and the model's template must print every digit) and decimals
// with more digits than a double holds. While they are in the tree, they are strings.

#include <string>
#include <string_view>

namespace rbee {

// The same JSON with strings in place of integers that do not fit 64 bits. json must be
// well-formed.
std::string hold_integers(std::string_view json);
// The same, with strings also in place of decimals that a double may not hold.
std::string hold_numbers(std::string_view json);
// Whether a number that is not a 64-bit integer may change its value as a double.
bool may_be_rounded(std::string_view number);
// The string that stands for such a number.
std::string held_number(std::string_view text);
// The form that a string from elsewhere must have in the same tree.
std::string held_text(std::string text);
// Turns the strings back into numbers. json: the dump of a tree with such strings.
std::string release_integers(std::string_view json);

}  // namespace rbee
