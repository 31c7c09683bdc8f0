#pragma once
// Ollama's routes of a chat worker.

#include <span>

#include "server/llm/service.h"

namespace rbee::server {

// The routes for text, those that describe the model, and the refused ones.
std::span<const ChatRoute> ollama_routes();
// What embedding workers answer: POST /api/embed and /api/embeddings.
std::span<const ChatRoute> ollama_embedding_refusals();

}  // namespace rbee::server
