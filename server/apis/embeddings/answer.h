#pragma once
// Answers of models for embeddings and for ranking, in the forms of OpenAI, llama-server, vLLM,
// text-embeddings-inference and Cohere.

#include <memory>

#include "server/apis/embeddings/request.h"
#include "server/embedding/service.h"

namespace rbee::server {

using Later = std::shared_ptr<DelayedResponse>;

// The body with its chat's tokens in the place of the chat.
EmbeddingBody with_chat_read(const EmbeddingService& service, EmbeddingBody body);

// Each throws Refused, or Error for values that the engine does not take.
Later embed(EmbeddingService& service, const EmbeddingBody& body);
// vLLM's /pooling, and its /classify.
Later pool(EmbeddingService& service, const EmbeddingBody& body);
Later classify(EmbeddingService& service, const EmbeddingBody& body);
Later embed_llama(EmbeddingService& service, const EmbeddingBody& body);
Later embed_tei(EmbeddingService& service, const EmbeddingBody& body);
Later embed_cohere(EmbeddingService& service, const CohereEmbedBody& body);
Later rerank(EmbeddingService& service, const RerankBody& body);
Later score(EmbeddingService& service, const ScoreBody& body);

}  // namespace rbee::server
