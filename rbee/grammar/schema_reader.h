#pragma once
// Reads the text of a schema. Internal to the folder.

#include <string_view>

#include "rbee/grammar/schema_logic.h"

namespace rbee::grammar {

// Throws invalid_argument if it is not JSON in UTF-8, with the byte, and for numbers beyond a
// double; unsupported for schemas that nest too deep. Numbers that neither 64 bits nor a double
// hold are kept as strings (number_text).
Schema read_schema(std::string_view text);

}  // namespace rbee::grammar
