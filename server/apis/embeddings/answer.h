#pragma once
// Answers of embedding and reranking models, in the forms of OpenAI, llama-server, vLLM,
// text-embeddings-inference and Cohere.

#include <memory>

#include "server/apis/embeddings/request.h"
#include "server/embedding/service.h"

namespace rbee::server {

using Later = std::shared_ptr<DelayedResponse>;

// Replaces the body's chat by its tokens.
EmbeddingBody with_chat_read(const EmbeddingService& service, EmbeddingBody body);

// The next functions throw Refused, or Error for values that the engine does not accept.
Later embed(EmbeddingService& service, const EmbeddingBody& body);
// vLLM's /pooling and /classify.
Later pool(EmbeddingService& service, const EmbeddingBody& body);
Later classify(EmbeddingService& service, const EmbeddingBody& body);
Later embed_llama(EmbeddingService& service, const EmbeddingBody& body);
Later embed_tei(EmbeddingService& service, const EmbeddingBody& body);
Later embed_cohere(EmbeddingService& service, const CohereEmbedBody& body);
Later rerank(EmbeddingService& service, const RerankBody& body);
Later score(EmbeddingService& service, const ScoreBody& body);

}  // namespace rbee::server
