#pragma once
// Ollama's routes of a chat worker.

#include <span>

#include "server/llm/service.h"

namespace rbee::server {

// For text, for what is known of the model, and those that are refused.
std::span<const ChatRoute> ollama_routes();
// What embedding workers answer: POST /api/embed and /api/embeddings.
std::span<const ChatRoute> ollama_embedding_refusals();

}  // namespace rbee::server
