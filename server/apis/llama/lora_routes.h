#pragma once
// Adapters: llama-server's list of them, and vLLM's routes to load and unload one.

#include <span>

#include "server/llm/service.h"

namespace rbee::server {

std::span<const ChatRoute> lora_routes();
// Only if the worker's flags allow it.
std::span<const ChatRoute> lora_loading_routes();

}  // namespace rbee::server
