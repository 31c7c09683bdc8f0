#pragma once
// Numbers and booleans that AUTOMATIC1111's clients send as strings. Its API accepts them as
// pydantic does in its lax mode. Internal to the server.

#include <cstdint>
#include <span>
#include <string_view>

#include "server/wire/json_body.h"

namespace rbee::server {

enum class LaxKind : uint8_t { number, truth };

struct LaxField {
  std::string_view name;
  LaxKind kind;
};

// Replaces a string by its meaning: "20" for numbers, "off" and 0 for booleans, in any case. Leaves
// everything else for the readers to refuse.
void read_laxly(JsonBody& body, std::span<const LaxField> fields);
void read_laxly(nlohmann::json& object, std::span<const LaxField> fields);

}  // namespace rbee::server
