#pragma once
// GBNF, the notation of grammars of llama.cpp: `name ::= "text" [a-z]+ (other | other){2,3} # ...`.
// Also: \xHH, \uHHHH and \UHHHHHHHH in texts and classes, [^...], `.` for any character. A rule
// goes on over lines until the next one begins. The text begins with the rule `root`.

#include <string_view>

#include "rbee/grammar/expression.h"

namespace rbee::grammar {

// Throws invalid_argument with line and column.
Grammar parse_gbnf(std::string_view text);

}  // namespace rbee::grammar
