#pragma once
// Tools and calls in the spellings of OpenAI's two APIs and of Anthropic's. Internal to
// server/wire.

#include <string>
#include <string_view>
#include <vector>

#include "server/wire/json_object.h"

namespace rbee::server {

enum class ToolSpelling : uint8_t { openai_chat, openai_responses, anthropic };

// "tools", "tool_choice" and whether at most one call is wanted; in chats also "functions" and
// "function_call". body: the source of the reader's object; it gives the order of a schema's
// properties.
void read_tools(ObjectReader& reader, const JsonBody& body, ToolSpelling spelling,
                ChatFields& chat);
// A custom tool's call is a call of a function with one text: its arguments, and the text inside
// them; other arguments are the text itself.
std::string custom_arguments(const std::string& input);
std::string custom_input(const std::string& arguments);
// "tool_calls" of an assistant's message, or its "function_call".
std::vector<SentCall> read_tool_calls(ObjectReader& message, std::vector<FieldError>& errors,
                                      const std::string& prefix);

}  // namespace rbee::server
