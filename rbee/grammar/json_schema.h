#pragma once
// Turns JSON schemas (draft 2020-12) into grammars of the JSON texts that they allow.
//
// Every text of the grammar is valid; not every valid text is in it: properties come in the
// schema's order, and unnamed properties only if additionalProperties asks for them. A `pattern`
// matches some part of the string. As the standard says, unknown keywords have no meaning. Keywords
// of the standard that a grammar cannot express are refused.

#include <string_view>

#include "rbee/grammar/expression.h"

namespace rbee::grammar {

// schema: JSON. Throws invalid_argument or unsupported; the message names the place in the schema
// ("#/properties/age") and the keyword.
Grammar parse_json_schema(std::string_view schema);

// Any JSON object.
Grammar json_object_grammar();

// One of these characters in a JSON string, escaped only if JSON requires it.
ExprPtr json_string_chars(const std::vector<CharRange>& ranges);

}  // namespace rbee::grammar
