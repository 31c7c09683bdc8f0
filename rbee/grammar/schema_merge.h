#pragma once
// Merges two JSON schemas into one that requires both. Internal to the folder.

#include <nlohmann/json.hpp>
#include <string>

#include "rbee/core/error.h"

namespace rbee::grammar {

// Properties keep their order.
using Schema = nlohmann::ordered_json;

// No value is valid. A caller with alternatives drops the one that threw it.
class NothingFits : public Error {
 public:
  NothingFits(const std::string& place, std::string_view why)
      : Error(Code::invalid_argument, "json_schema", cat(place, ": ", why)) {}
};

// A merged schema's patterns beyond `pattern`: an array.
inline constexpr const char* kMorePatterns = "\x01patterns";

class SchemaValidator;

// Both must have passed check_keywords(), and must have no $ref, allOf, oneOf, if or dependent... .
// place: of `more`. validator: matches names to patterns. Throws unsupported if one schema cannot
// express both, and NothingFits if no value is valid under both.
Schema merge_schemas(const Schema& base, const Schema& more, const std::string& place,
                     SchemaValidator& validator);

// About the bytes that a copy takes.
int64_t tree_bytes(const Schema& tree);
// Work (budget.h) of copying a tree, and of a place's text.
int64_t work_of_copy(int64_t tree_bytes);
int64_t work_of_place(const std::string& place);

// The schemas that {"not": schema} excludes: an array.
Schema parts_of_not(const Schema& schema);

// {"allOf": [a, b]}, or only the one that is not `true`.
Schema both_schemas(const Schema& a, const Schema& b);

}  // namespace rbee::grammar
