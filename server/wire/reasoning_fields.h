#pragma once
// Fields for reasoning, in the spellings of OpenAI, Anthropic, vLLM and llama-server, and other
// variables of a chat template. Internal to the server.

#include <string_view>
#include <vector>

#include "server/wire/json_object.h"

namespace rbee::server {

// "chat_template_kwargs", "reasoning_effort", and a budget: thinking_token_budget,
// reasoning_budget, reasoning_budget_tokens or thinking_budget_tokens. -1: no limit; of several,
// the smallest other value counts.
void read_reasoning(ObjectReader& reader, const JsonBody& body, ChatFields& chat);
// The effort, under this name in the reader.
void read_reasoning_effort(ObjectReader& reader, const char* name, ChatFields& chat);
// Anthropic's "thinking". Without it the chat template decides.
void read_thinking(ObjectReader& reader, std::vector<FieldError>& errors, ChatFields& chat);
// Ollama's "think": a boolean, or an effort. Returns whether it asks for reasoning.
bool read_think(ObjectReader& reader, ChatFields& chat);

}  // namespace rbee::server
