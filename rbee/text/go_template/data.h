#pragma once
// A chat's messages and tools as Ollama's templates see them.

#include <string>
#include <string_view>
#include <vector>

#include "rbee/text/go_template/value.h"
#include "rbee/text/template/message.h"

namespace rbee::text::go {

// The data of a JSON object: maps without structs. Throws invalid_argument.
Value data_of(std::string_view json);

struct ChatTurn {
  std::string role, content, thinking;
  std::string tool_name, tool_call_id;
  Items calls{};
  size_t pictures = 0;  // their tags are in the content
};
ChatTurn turn_of(const Message& message);
Value message_value(const ChatTurn& turn);

struct ChatVariables {
  Value tools;  // nil: none
  bool thinks = false, think_is_set = false;
  std::string think_level;
  std::string suffix;  // after a gap; empty: there is none
};
// json: may be empty. Throws invalid_argument.
ChatVariables chat_variables(std::string_view json);

}  // namespace rbee::text::go
