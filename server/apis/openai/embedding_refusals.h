#pragma once
// A chat worker's answers on the routes of embedding and reranking models.

#include <span>

#include "server/llm/service.h"

namespace rbee::server {

std::span<const ChatRoute> embedding_refusals();

}  // namespace rbee::server
