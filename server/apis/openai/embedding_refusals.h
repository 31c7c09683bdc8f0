#pragma once
// What a chat worker answers where models for embeddings and ranking do.

#include <span>

#include "server/llm/service.h"

namespace rbee::server {

std::span<const ChatRoute> embedding_refusals();

}  // namespace rbee::server
