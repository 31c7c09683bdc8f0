#pragma once
// The keywords of JSON schemas that say something about values. Internal to the folder.

#include <optional>
#include <string>
#include <string_view>

#include "rbee/grammar/schema_merge.h"

namespace rbee::grammar {

// Whether the keyword is the only one that says something.
bool stands_alone(const Schema& schema, std::string_view keyword);
// The type that the keywords are about, for schemas that name none; empty: none in particular.
std::string implied_type(const Schema& schema);
// The values of enum or const. Nothing: it names none.
std::optional<Schema> few_values(const Schema& schema);
// The types that are none of these: a name or an array of names. Integers are numbers.
Schema types_but(const Schema& types);
// Without what says nothing: names that are no keywords, and keywords about types that the schema
// does not allow.
Schema without_idle(const Schema& schema);

// Whether the keywords have values that they can have, those of the schemas within too; of idle
// ones that is not asked. place: of the schema. Throws invalid_argument with place and keyword.
void check_keywords(const Schema& schema, const std::string& place);

}  // namespace rbee::grammar
