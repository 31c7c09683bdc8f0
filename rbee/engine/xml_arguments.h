#pragma once

#include "rbee/engine/engine.h"
#include "rbee/grammar/expression.h"

namespace rbee::engine {

// <parameter=key> value </parameter> for each property of the tool's schema, in its order, those
// that are not required perhaps, and </function>. Texts are any without the end mark, or those of
// their `enum`; other values are JSON by their schema. Throws unsupported where the tool is strict
// and its schema holds more.
grammar::ExprPtr xml_arguments(grammar::Grammar& into, const Tool& tool);

}  // namespace rbee::engine
