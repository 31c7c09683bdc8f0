#pragma once
// A chat's message as templates take it.

#include <string>

namespace rbee::text {

struct Message {
  std::string role;
  std::string content;
  std::string extra_json;  // more fields ("tool_calls", "name" ...) as a JSON object; may be empty
};

}  // namespace rbee::text
