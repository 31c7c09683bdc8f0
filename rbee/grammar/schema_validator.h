#pragma once
// Whether a JSON value is valid under a schema (draft 2020-12), for the values that schemas name.
// Internal to the folder.

#include <string>
#include <string_view>

#include "rbee/grammar/schema_merge.h"

namespace rbee::grammar {

// root: of references. Throws unsupported for keywords that cannot be held, and for a `format`
// whose pattern here, which is narrower than the format, the value does not match.
bool is_valid(const Schema& value, const Schema& schema, const Schema& root,
              const std::string& place);

// Whether two values are the same: the order of members says nothing, nor how a number is written.
bool same_value(const Schema& a, const Schema& b);

// Whether some part of the text matches. Throws as parse_regex does.
bool matches_anywhere(const std::string& pattern, std::string_view text, const std::string& place);

// What `#...` points to. Throws invalid_argument.
const Schema& resolve_pointer(const Schema& root, const std::string& pointer,
                              const std::string& place);

// The name of the value's type; "integer" for whole numbers.
std::string_view type_of(const Schema& value);
// types: a name or an array of names.
bool has_type(const Schema& value, const Schema& types);

}  // namespace rbee::grammar
