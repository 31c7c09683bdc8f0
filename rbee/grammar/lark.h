#pragma once
// Grammars in the notation of Lark (lark-parser.readthedocs.io, "Grammar Reference"), as a text's
// form: rules and terminals with |, ( ), [ ], ?, *, +, ~n, ~n..m, "texts" (also with the flag i, of
// ASCII), /regular expressions/ (regex.h), "a".."z", aliases and priorities, which change no text,
// %ignore, and %import of the terminals of `common`. A text begins with the rule `start`.
//
// Texts are read without a lexer, so a terminal may take any part that fits it, not only the
// longest one. Rules that begin with themselves are made repetitions; others that do so by way of
// another rule are refused by Automaton. Refused by name: templates, other directives, other flags,
// and imports from elsewhere.

#include <string_view>

#include "rbee/grammar/regex.h"

namespace rbee::grammar {

// Throws invalid_argument with line and column, or unsupported.
Grammar parse_lark(std::string_view text, const CharWriter& writer = {});

}  // namespace rbee::grammar
