#pragma once
// The keywords of JSON schemas that constrain values. Internal to the folder.

#include <optional>
#include <string>
#include <string_view>

#include "rbee/grammar/schema_merge.h"

namespace rbee::grammar {

// Whether the keyword is the only one that constrains values.
bool stands_alone(const Schema& schema, std::string_view keyword);
// The type to which the keywords apply, for schemas that name none; empty if there is no single
// one.
std::string implied_type(const Schema& schema);
// The values of enum or const; nothing if it has neither.
std::optional<Schema> few_values(const Schema& schema);
// All types but these, which are a name or an array of names. Integers are numbers.
Schema types_but(const Schema& types);
// The schema without what has no effect: unknown keywords, and keywords for types that it does not
// allow.
Schema without_idle(const Schema& schema);

// Checks that the keywords have values that they can have, also in nested schemas, but not for
// keywords without effect. place: of the schema. Throws invalid_argument with place and keyword.
void check_keywords(const Schema& schema, const std::string& place);

}  // namespace rbee::grammar
