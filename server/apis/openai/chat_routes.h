#pragma once
// OpenAI's chats and completions, and its list of models.

#include <span>

#include "server/llm/service.h"

namespace rbee::server {

std::span<const ChatRoute> openai_chat_routes();
std::span<const ChatRoute> chat_model_routes();

}  // namespace rbee::server
