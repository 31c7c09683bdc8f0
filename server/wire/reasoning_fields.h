#pragma once
// How a model is to reason, in the spellings of OpenAI, Anthropic, vLLM and llama-server, and what
// else a chat's template is told. Internal to the server.

#include <string_view>
#include <vector>

#include "server/wire/json_object.h"

namespace rbee::server {

// "chat_template_kwargs", "reasoning_effort", and a budget under its names: thinking_token_budget,
// reasoning_budget, reasoning_budget_tokens, thinking_budget_tokens. -1: no limit; of several the
// smallest other holds.
void read_reasoning(ObjectReader& reader, const JsonBody& body, ChatFields& chat);
// The effort under the reader's name of it.
void read_reasoning_effort(ObjectReader& reader, const char* name, ChatFields& chat);
// Anthropic's "thinking". Without it the chat template's own way stays.
void read_thinking(ObjectReader& reader, std::vector<FieldError>& errors, ChatFields& chat);

}  // namespace rbee::server
