#pragma once
// Cohere's chats.

#include <span>

#include "server/llm/service.h"

namespace rbee::server {

std::span<const ChatRoute> cohere_routes();

}  // namespace rbee::server
