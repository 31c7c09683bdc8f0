#pragma once
// Renders a chat through its template, with tools, calls and reasoning of earlier turns.

#include <functional>
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

// The beginning of a picture's tag, which a template in Go's form writes as Ollama does: "[img-0]".
// The picture's number in the chat follows.
inline constexpr std::string_view kPictureTag = "[img-";

// Throws invalid_argument with the template's message, or if the variables are no JSON object. A
// template in Go's form gives tags for pictures: a tag replaces the next "[img]" in its message's
// text; if none is left, it stands where the picture stands.
std::string render_chat(const text::ChatTemplate& code, const SpecialTexts& special,
                        const std::vector<ChatMessage>& messages, const ChatOptions& options);

// Replaces the tags of this many pictures in the chat by the mark.
std::string with_picture_marks(std::string chat, int64_t pictures, std::string_view mark);

// Changes the variable "suffix" (the text after a gap that the answer fills), if it is there.
std::string with_suffix(const std::string& variables,
                        const std::function<std::string(std::string_view)>& change);

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
