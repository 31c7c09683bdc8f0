#pragma once
// Anthropic's Messages API.

#include <span>

#include "server/llm/service.h"

namespace rbee::server {

std::span<const ChatRoute> anthropic_routes();

}  // namespace rbee::server
