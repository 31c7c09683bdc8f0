#pragma once
// Renders a parsed template of Go.

#include <string>

#include "rbee/text/go_template/ast.h"
#include "rbee/text/template/limits.h"

namespace rbee::text::go {

// nodes: those of the template, or others with its named ones. Throws invalid_argument with the
// line.
std::string render(const Template& code, const Nodes& nodes, const Value& data,
                   const TemplateLimits& limits);

}  // namespace rbee::text::go
