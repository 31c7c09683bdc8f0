#pragma once
// Parses tokens into a Template, by recursive descent with Jinja2's precedences.

#include <memory>
#include <string_view>

#include "rbee/text/template/ast.h"

namespace rbee::text::jinja {

// Throws Failure with a position.
std::unique_ptr<const Template> parse(std::string_view source, const TemplateLimits& limits);

}  // namespace rbee::text::jinja
