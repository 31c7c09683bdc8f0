#pragma once
// Numbers that a JSON tree would round, on their way through one: integers beyond 64 bits, as
// tools' schemas have for bounds (u128, 2^64) and the model's template prints with every digit, and
// decimals of more digits than a double, which schemas' values have.

#include <string>
#include <string_view>

namespace rbee {

// json: well-formed. The same with texts in place of the integers that no 64 bits hold.
std::string hold_integers(std::string_view json);
// The same with texts in place of decimals that a double may not hold, too.
std::string hold_numbers(std::string_view json);
// Whether a number, which is no integer of 64 bits, may be another one as a double.
bool may_be_rounded(std::string_view number);
// One of them: what stands in its place.
std::string held_number(std::string_view text);
// A text that was not in that JSON, as it has to stand in the same tree.
std::string held_text(std::string text);
// json: a tree with such texts, as it is dumped. The same with the numbers.
std::string release_integers(std::string_view json);

}  // namespace rbee
