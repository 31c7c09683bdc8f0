#pragma once
// Turns long repetitions into counters instead of copies of states. Internal to the folder.

#include "rbee/grammar/expression.h"

namespace rbee::grammar {

// Gives a rule of its own to the repeated part of each repetition that would take many states, and
// to each set of texts with lengths; an Expr::Kind::counted takes its place. A part that may be
// empty counts only its other texts, from 0 on; a part that may be empty through a rule that it
// calls does not change. Throws unsupported if the tree nests too deep.
Grammar with_counters(const Grammar& grammar);

}  // namespace rbee::grammar
