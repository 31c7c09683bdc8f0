#pragma once
// OpenAI's Conversations API.

#include <span>

#include "server/llm/service.h"

namespace rbee::server {

std::span<const ChatRoute> conversation_routes();

}  // namespace rbee::server
