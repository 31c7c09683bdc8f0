#pragma once
// GBNF, the notation of grammars of llama.cpp: `name ::= "text" [a-z]+ (other | other){2,3} # ...`.
// Also: \xHH, \uHHHH and \UHHHHHHHH in texts and classes, [^...], `.` for any character. Lines end
// with a line feed, a carriage return or both. A rule may span lines, until the next one begins.
// The start rule is `root`. <name> and <[id]> are tokens; !<name> and !<[id]> are any other token.

#include <functional>
#include <string_view>

#include "rbee/grammar/expression.h"

namespace rbee::grammar {

// The expression of a token (with its < and >), or of any other token. Throws if there is no such
// token.
using TokenReader = std::function<ExprPtr(std::string_view token, bool other)>;

// Throws invalid_argument with line and column; without `tokens`, also if the text has tokens.
Grammar parse_gbnf(std::string_view text, const TokenReader& tokens = {});

}  // namespace rbee::grammar
