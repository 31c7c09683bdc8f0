#pragma once
// Integers beyond 64 bits on their way through a JSON tree, which would make floats of them. Tools'
// schemas have such bounds (u128, 2^64), and the model's template prints every digit.

#include <string>
#include <string_view>

namespace rbee {

// json: well-formed. The same with texts in place of the integers that no 64 bits hold.
std::string hold_integers(std::string_view json);
// One of them: what stands in its place.
std::string held_integer(std::string_view digits);
// A text that was not in that JSON, as it has to stand in the same tree.
std::string held_text(std::string text);
// json: a tree of hold_integers()'s, as it is dumped. The same with the integers.
std::string release_integers(std::string_view json);

}  // namespace rbee
