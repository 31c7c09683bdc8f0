#pragma once

#include <functional>
#include <string_view>

#include "rbee/engine/api/text.h"
#include "rbee/grammar/expression.h"
#include "rbee/text/output/xml_form.h"

namespace rbee::engine {

// The marks of a form of calls, and how a grammar writes each.
struct XmlMarks {
  const text::XmlForm& form;
  std::function<grammar::ExprPtr(std::string_view)> mark;
};

// A rule for any text up to and including the end mark.
grammar::ExprPtr xml_text(grammar::Grammar& into, const XmlMarks& marks);

// A rule for <parameter=key> value </parameter> for each property of the tool's schema in its order
// (optional ones may be absent), then </function>, in the form's marks. Strings are `text`, a rule
// of xml_text(), or a value of their `enum`; other values are JSON by their schema. Throws
// unsupported if the tool is strict and its schema asks for more than this.
grammar::ExprPtr xml_arguments(grammar::Grammar& into, const XmlMarks& marks, const Tool& tool,
                               const grammar::ExprPtr& text);

}  // namespace rbee::engine
