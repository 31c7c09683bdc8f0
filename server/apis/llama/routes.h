#pragma once
// llama-server's own routes: completions, and its properties and state.

#include <span>

#include "server/llm/service.h"

namespace rbee::server {

std::span<const ChatRoute> llama_routes();

}  // namespace rbee::server
