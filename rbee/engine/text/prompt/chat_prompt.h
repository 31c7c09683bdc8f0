#pragma once
// A chat as its template reads it, with tools, calls and reasoning of earlier turns.

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

// Throws invalid_argument where the arguments of an earlier call are nested more than 64 deep: what
// writes them calls itself for every level, and a stack ends.
void check_nesting(const std::vector<ChatMessage>& messages);

// Throws invalid_argument: what the template says, or where the variables are no JSON object.
std::string render_chat(const text::ChatTemplate& code, const SpecialTexts& special,
                        const std::vector<ChatMessage>& messages, const ChatOptions& options);

// Variables of GPT-OSS's template, which knows the efforts low, medium and high alone: others
// become the nearest.
std::string harmony_variables(const std::string& variables);

// The request's variables, and those that llama-server defines beside them: enable_thinking, today
// as date_string ("26 Jul 2024") and datetime ("Jul 26 2024"), and functions, the tools' JSON.
// Throws invalid_argument where the request's are no JSON object.
std::string llama_variables(const ChatOptions& options);

// How reasoning can come behind a prompt.
enum class PromptEnd : uint8_t { plain, inside_reasoning, behind_reasoning };
PromptEnd end_of(std::string_view prompt, text::ReasoningFormat format);

}  // namespace rbee::engine
