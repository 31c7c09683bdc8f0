#pragma once
// Prompts that are longer than the context.

#include "server/apis/ollama/request.h"
#include "server/llm/service.h"

namespace rbee::server {

// With `truncate`, drops the oldest messages of a chat until its prompt fits: whole turns, so that
// the chat still begins with a user's message, and neither a system message nor the last user's
// message and what follows. If that is not enough, with `shift` the prompt loses its first tokens,
// unless it shows pictures. What stays too long is the engine's error.
void make_fit(const LlmService& service, OllamaRequest& body);

}  // namespace rbee::server
