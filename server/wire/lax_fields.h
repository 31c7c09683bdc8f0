#pragma once
// Numbers and truth values that clients of AUTOMATIC1111 send as texts. Its API takes them as
// pydantic does where it is not strict. Internal to the server.

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

// Puts what a text means in its place: "20" among the numbers, "off" and 0 among the truth values,
// in any case of letters. Everything else stays as it is, for the readers to refuse.
void read_laxly(JsonBody& body, std::span<const LaxField> fields);
void read_laxly(nlohmann::json& object, std::span<const LaxField> fields);

}  // namespace rbee::server
