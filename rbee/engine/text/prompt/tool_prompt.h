#pragma once
// Chats with tools for templates that do not show tools: the system message describes them, and
// earlier calls and their results become text.

#include <string>
#include <vector>

#include "rbee/engine/api/text.h"
#include "rbee/text/output/output_format.h"
#include "rbee/text/template/chat_template.h"

namespace rbee::engine {

// Whether the template renders a chat differently with tools. If it does not accept a chat of one
// message, the answer is true.
bool shows_tools(const text::ChatTemplate& code);

// Where the tools are described; in the user message if the template takes no system message.
enum class ToolPromptPlace : uint8_t { chat_template, system, user };
// Whether the template shows a system message.
bool takes_system(const text::ChatTemplate& code);

// Turns calls and their results into text and describes the tools: in the system message (a new one
// if there is none), or in the first message. format: not none. place: not chat_template.
std::vector<ChatMessage> with_tool_prompt(std::vector<ChatMessage> messages,
                                          const std::vector<Tool>& tools, text::ToolFormat format,
                                          ToolPromptPlace place);

// Calls as a model writes them in this format; arguments that are no JSON object stay as they are.
std::string written_calls(const std::vector<ToolCall>& calls, text::ToolFormat format);

}  // namespace rbee::engine
