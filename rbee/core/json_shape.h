#pragma once
// How deep and how large a JSON text (RFC 8259) is, before a parser makes a tree of it. A callback
// of nlohmann's parser could tell that too, but such a parser looks at all members of an object
// again whenever one of them ends: its time grows with the square of their number.

#include <cstddef>
#include <string_view>

namespace rbee {

struct JsonShape {
  size_t depth = 0;   // objects and arrays within one another
  size_t values = 0;  // at most so many, keys aside
};

// Reads the text once and keeps nothing. Of a text that is no JSON: no less than what a parser
// makes of it before it finds out.
JsonShape shape_of_json(std::string_view text);

}  // namespace rbee
