#pragma once
// Reads a template of Go.

#include <string_view>

#include "rbee/text/go_template/ast.h"
#include "rbee/text/template/limits.h"

namespace rbee::text::go {

// Throws invalid_argument with the line, and names a function that there is not.
Template parse(std::string_view source, const TemplateLimits& limits);

}  // namespace rbee::text::go
