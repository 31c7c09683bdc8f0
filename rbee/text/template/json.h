#pragma once
// JSON to values.

#include <string_view>

#include "rbee/text/template/runtime.h"

namespace rbee::text::jinja {

// `what` names the text in errors. Throws for anything but an object, for nesting beyond max_depth
// and for integers of more than 4300 digits.
const Dict& parse_json_object(Runtime& runtime, std::string_view json, std::string_view what);

}  // namespace rbee::text::jinja
