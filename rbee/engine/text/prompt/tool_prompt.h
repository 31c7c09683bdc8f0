#pragma once
// Chats with tools for templates that do not show them: the model is told in the system message,
// and earlier calls and their results are texts.

#include <string>
#include <vector>

#include "rbee/engine/api/text.h"
#include "rbee/text/output/output_format.h"
#include "rbee/text/template/chat_template.h"

namespace rbee::engine {

// Whether a chat looks otherwise with tools than without. A template that takes no chat of one line
// is believed to show them.
bool shows_tools(const text::ChatTemplate& code);

// Who tells a model of the tools; the user where a template takes no system message.
enum class ToldBy : uint8_t { template_itself, system, user };
// Whether the template shows a system message.
bool takes_system(const text::ChatTemplate& code);

// Messages without calls and results of calls, which tell of the tools: the system's, a new one
// where there is none, or the first of all. format: not none. told: not by the template.
std::vector<ChatMessage> with_tool_prompt(std::vector<ChatMessage> messages,
                                          const std::vector<Tool>& tools, text::ToolFormat format,
                                          ToldBy told);

// Calls as a model writes them in this form; arguments that are no JSON object are none.
std::string written_calls(const std::vector<ToolCall>& calls, text::ToolFormat format);

}  // namespace rbee::engine
