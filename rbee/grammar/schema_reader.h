#pragma once
// The text of a schema. Internal to the folder.

#include <string_view>

#include "rbee/grammar/schema_logic.h"

namespace rbee::grammar {

// Throws invalid_argument for what is no JSON in UTF-8, with the byte, and for numbers beyond a
// double; unsupported for schemas that are nested too deep. Numbers of values and bounds that no
// 64 bits and no double hold are their texts (number_text).
Schema read_schema(std::string_view text);

}  // namespace rbee::grammar
