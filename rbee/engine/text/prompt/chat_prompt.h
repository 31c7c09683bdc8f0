#pragma once
// Renders a chat through its template, with tools, calls and reasoning of earlier turns.

#include <string>
#include <string_view>
#include <vector>

#include "rbee/engine/api/text.h"
#include "rbee/text/output/output_format.h"
#include "rbee/text/template/chat_template.h"

namespace rbee::engine {

struct SpecialTexts {
  std::string bos, eos;
};

// Throws invalid_argument if an earlier call's arguments are nested more than 64 deep: the code
// that writes them is recursive and could overflow the stack.
void check_nesting(const std::vector<ChatMessage>& messages);

// Throws invalid_argument with the template's message, or if the variables are no JSON object.
std::string render_chat(const text::ChatTemplate& code, const SpecialTexts& special,
                        const std::vector<ChatMessage>& messages, const ChatOptions& options);

// Variables for GPT-OSS's template, which knows only the efforts low, medium and high; other
// efforts become the nearest of these.
std::string harmony_variables(const std::string& variables);

// The request's variables and those that llama-server adds: enable_thinking, today as date_string
// ("26 Jul 2024") and datetime ("Jul 26 2024"), and functions, the tools' JSON. Throws
// invalid_argument if the request's variables are no JSON object.
std::string llama_variables(const ChatOptions& options);

// Where a prompt ends: in no reasoning, inside it, or just after it.
enum class PromptEnd : uint8_t { plain, inside_reasoning, after_reasoning };
PromptEnd end_of(std::string_view prompt, text::ReasoningFormat format);

}  // namespace rbee::engine
