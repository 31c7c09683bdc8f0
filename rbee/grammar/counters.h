#pragma once
// Long repetitions as counters in place of copies of states. Internal to the folder.

#include "rbee/grammar/expression.h"

namespace rbee::grammar {

// The grammar with a rule of its own for the part of each repetition that would take many states,
// and for each set of texts with lengths; what stood there becomes Expr::Kind::counted. Parts that
// may be empty count without the empty text, from 0 on; those that are so by a rule that they call
// are left as they are. Throws unsupported where the tree nests too deep.
Grammar with_counters(const Grammar& grammar);

}  // namespace rbee::grammar
