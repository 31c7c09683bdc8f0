#pragma once
// Says in plain words where a text breaks the grammar of JSON (RFC 8259). For messages only:
// parsers call it after they have refused a text.

#include <cstdint>
#include <string>
#include <string_view>

namespace rbee {

enum class JsonDialect : uint8_t {
  standard,
  python,  // also NaN, Infinity and -Infinity
};

// "line 3, column 14: expected a comma or }, found \"x\"". Lines and columns count from 1, columns
// in characters. A number beyond a double's range is a fault too. Empty if the text has no fault.
std::string json_fault(std::string_view text, JsonDialect dialect = JsonDialect::standard);

}  // namespace rbee
