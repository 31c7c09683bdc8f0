#pragma once
// Two JSON schemas that both have to hold, as one. Internal to the folder.

#include <nlohmann/json.hpp>
#include <string>

namespace rbee::grammar {

// In which properties keep their order.
using Schema = nlohmann::ordered_json;

// Neither has $ref nor allOf. place: where `more` stands. Throws unsupported where one schema
// cannot say both.
Schema merge_schemas(const Schema& base, const Schema& more, const std::string& place);

}  // namespace rbee::grammar
