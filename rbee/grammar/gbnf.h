#pragma once
// GBNF, the notation of grammars of llama.cpp: `name ::= "text" [a-z]+ (other | other){2,3} # ...`.
// Also: \xHH, \uHHHH and \UHHHHHHHH in texts and classes, [^...], `.` for any character. A rule
// goes on over lines until the next one begins. The text begins with the rule `root`. <name> and
// <[id]> are tokens, !<name> and !<[id]> any but this one.

#include <functional>
#include <string_view>

#include "rbee/grammar/expression.h"

namespace rbee::grammar {

// What is read at a token (with its < and >), or at any other one. Throws where there is none.
using TokenReader = std::function<ExprPtr(std::string_view token, bool other)>;

// Throws invalid_argument with line and column; without `tokens` also where there are some.
Grammar parse_gbnf(std::string_view text, const TokenReader& tokens = {});

}  // namespace rbee::grammar
