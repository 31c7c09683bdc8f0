#pragma once
// Ollama's routes of an embedding or ranking worker.

#include <span>

#include "server/embedding/service.h"

namespace rbee::server {

// POST /api/embed and /api/embeddings.
std::span<const EmbeddingRoute> ollama_embedding_routes();
// Those that tell of the model, and those that are refused.
std::span<const EmbeddingRoute> ollama_embedding_model_routes();
// What chat workers answer: POST /api/generate and /api/chat.
std::span<const EmbeddingRoute> ollama_text_refusals();

}  // namespace rbee::server
