#pragma once
// JSON schemas (draft 2020-12) as grammars of the JSON texts that they allow.
//
// Every text of the grammar is valid; not every valid text is in it: properties come in the order
// of the schema, others than the named ones only where additionalProperties asks for them. A
// `pattern` matches some part of the string. Keywords that are not known to this file have no
// meaning, as the standard says; those of the standard that it cannot hold are refused.

#include <string_view>

#include "rbee/grammar/expression.h"

namespace rbee::grammar {

// schema: JSON. Throws invalid_argument or unsupported; the message names the place in the schema
// ("#/properties/age") and the keyword.
Grammar parse_json_schema(std::string_view schema);

// Any JSON object.
Grammar json_object_grammar();

// One of these characters as it stands in a JSON string, escaped only where it has to be.
ExprPtr json_string_chars(const std::vector<CharRange>& ranges);

}  // namespace rbee::grammar
