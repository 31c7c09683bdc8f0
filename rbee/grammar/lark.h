#pragma once
// Grammars in the notation of Lark (lark-parser.readthedocs.io, "Grammar Reference"), as a text's
// form: rules and terminals with |, ( ), [ ], ?, *, +, ~n, ~n..m, "texts" (also with the flag i, of
// ASCII), /regular expressions/ (regex.h), "a".."z", aliases and priorities, which change no text,
// %ignore, and %import of the terminals of `common`. A text begins with the rule `start`.
//
// There is no lexer, so a terminal may match any part that fits, not only the longest one.
// Left-recursive rules become repetitions; Automaton refuses indirect left recursion. Refused by
// name: templates, other directives, other flags, and imports from elsewhere.

#include <string_view>

#include "rbee/grammar/regex.h"

namespace rbee::grammar {

// Throws invalid_argument with line and column, or unsupported.
Grammar parse_lark(std::string_view text, const CharWriter& writer = {});

}  // namespace rbee::grammar
