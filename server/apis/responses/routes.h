#pragma once
// OpenAI's Responses API.

#include <span>

#include "server/llm/service.h"

namespace rbee::server {

std::span<const ChatRoute> responses_routes();

}  // namespace rbee::server
