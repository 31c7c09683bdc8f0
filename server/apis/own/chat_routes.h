#pragma once
// The worker's own jobs and answers for text.

#include <span>

#include "server/llm/service.h"

namespace rbee::server {

std::span<const ChatRoute> own_chat_routes();

}  // namespace rbee::server
