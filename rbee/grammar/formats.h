#pragma once
// The values of JSON schema's `format` that are known, as regular expressions. Internal.

#include <string>
#include <string_view>

namespace rbee::grammar {

// Null for unknown formats.
const char* format_pattern(std::string_view format);

}  // namespace rbee::grammar
