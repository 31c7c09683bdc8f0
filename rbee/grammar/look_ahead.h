#pragma once
// Places in an expression at which the rest of the text has to be one of a set: (?=...) and
// (?!...) of regular expressions. Internal to the folder.
//
// The automaton of such an expression reads the text as usual. Each time that it passes a place it
// begins to read the place's set too, and at the end all that it began have to accept. What it
// reads beside a state is a finite set, so that this is a finite automaton as well. It also notes
// whether the character read last is one of a word, where the expression has marks of that.

#include <cstdint>
#include <vector>

#include "rbee/grammar/text_set.h"

namespace rbee::grammar {

struct LookAhead {
  TextSet rest;            // what may follow, up to the end of the text
  std::vector<bool> free;  // states of `rest` behind which anything may follow
};

// all: any text.
ExprPtr look_ahead(TextSet rest, const TextSet& all);
// See Expr::Kind.
ExprPtr mark(bool word);
ExprPtr behind(bool word);

// As determinise(), of what looks ahead. Calls no rules.
std::vector<DfaState> determinise_ahead(const Nfa& nfa, const Rule& rule, int64_t& budget);

}  // namespace rbee::grammar
