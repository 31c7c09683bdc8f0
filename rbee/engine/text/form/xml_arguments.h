#pragma once

#include "rbee/engine/api/text.h"
#include "rbee/grammar/expression.h"

namespace rbee::engine {

// A rule for any text up to and including the end mark.
grammar::ExprPtr xml_text(grammar::Grammar& into);

// A rule for <parameter=key> value </parameter> for each property of the tool's schema in its order
// (optional ones may be absent), then </function>. Strings are `text`, a rule of xml_text(), or a
// value of their `enum`; other values are JSON by their schema. Throws unsupported if the tool is
// strict and its schema asks for more than this.
grammar::ExprPtr xml_arguments(grammar::Grammar& into, const Tool& tool,
                               const grammar::ExprPtr& text);

}  // namespace rbee::engine
