#pragma once
// llama-server's and vLLM's routes for tokens and chat templates.

#include <span>

#include "server/llm/service.h"

namespace rbee::server {

std::span<const ChatRoute> text_routes();

}  // namespace rbee::server
