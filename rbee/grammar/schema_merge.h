#pragma once
// Two JSON schemas that both have to hold, as one. Internal to the folder.

#include <nlohmann/json.hpp>
#include <string>

#include "rbee/core/error.h"

namespace rbee::grammar {

// In which properties keep their order.
using Schema = nlohmann::ordered_json;

// No value is valid. Alternatives go on without the one that threw it.
class NothingFits : public Error {
 public:
  NothingFits(const std::string& place, std::string_view why)
      : Error(Code::invalid_argument, "json_schema", cat(place, ": ", why)) {}
};

// The patterns behind `pattern` that a merged schema has: an array.
inline constexpr const char* kMorePatterns = "\x01patterns";

class SchemaValidator;

// Both have passed check_keywords(). Neither has $ref, allOf, oneOf, if or dependent... . place:
// where `more` stands. validator: for names under patterns. Throws unsupported where one schema
// cannot say both, NothingFits where no value fits both.
Schema merge_schemas(const Schema& base, const Schema& more, const std::string& place,
                     SchemaValidator& validator);

// The schemas none of which may hold under {"not": schema}: an array.
Schema parts_of_not(const Schema& schema);

// {"allOf": [a, b]}, or the one that is not true.
Schema both_schemas(const Schema& a, const Schema& b);

}  // namespace rbee::grammar
