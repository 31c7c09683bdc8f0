#pragma once

#include "rbee/engine/api/text.h"
#include "rbee/grammar/expression.h"

namespace rbee::engine {

// A rule for any text that is read to its end, with the end mark.
grammar::ExprPtr xml_text(grammar::Grammar& into);

// <parameter=key> value </parameter> for each property of the tool's schema, in its order, those
// that are not required perhaps, and </function>. Texts are `text`, of xml_text(), or those of
// their `enum`; other values are JSON by their schema. Throws unsupported where the tool is strict
// and its schema holds more.
grammar::ExprPtr xml_arguments(grammar::Grammar& into, const Tool& tool,
                               const grammar::ExprPtr& text);

}  // namespace rbee::engine
