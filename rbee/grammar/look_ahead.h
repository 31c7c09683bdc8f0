#pragma once
// Lookahead in regular expressions, (?=...) and (?!...): at a place in the expression, the rest of
// the text must be in a set. Internal to the folder.
//
// The automaton of such an expression reads the text as usual. Each time it passes such a place, it
// also begins to read the place's set, and at the end all begun sets must accept. There are
// finitely many such combinations, so this is a finite automaton too. If the expression has word
// marks, it also notes whether the last character is a word character.

#include <cstdint>
#include <vector>

#include "rbee/grammar/text_set.h"

namespace rbee::grammar {

struct LookAhead {
  TextSet rest;            // texts that may follow, up to the end
  std::vector<bool> free;  // states of `rest` after which any text may follow
};

// all: any text.
ExprPtr look_ahead(TextSet rest, const TextSet& all);
// See Expr::Kind.
ExprPtr mark(bool word);
ExprPtr behind(bool word);

// As determinise(), for expressions with lookahead. They must not call rules.
std::vector<DfaState> determinise_ahead(const Nfa& nfa, const Rule& rule, int64_t& budget);

}  // namespace rbee::grammar
