#pragma once
// Ollama's routes of an embedding or ranking worker.

#include <span>

#include "server/embedding/service.h"

namespace rbee::server {

// POST /api/embed and /api/embeddings.
std::span<const EmbeddingRoute> ollama_embedding_routes();
// The routes that describe the model, and the refused ones.
std::span<const EmbeddingRoute> ollama_embedding_model_routes();
// What chat workers answer: POST /api/generate and /api/chat.
std::span<const EmbeddingRoute> ollama_text_refusals();

}  // namespace rbee::server
