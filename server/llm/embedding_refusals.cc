#include "server/llm/embedding_refusals.h"

#include "rbee/core/cat.h"

namespace rbee::server {

void add_embedding_refusals(Router& router, const LlmService& service) {
  for (const char* path : {"/v1/embeddings", "/embeddings", "/embedding", "/v2/embed", "/rerank",
                           "/v1/rerank", "/v2/rerank", "/reranking", "/v1/reranking", "/score",
                           "/v1/score", "/pooling", "/classify", "/embed"}) {
    router.add({.method = "POST",
                .pattern = path,
                .handler =
                    [&service](const Request&) {
                      const std::string message =
                          cat(service.model_id(), " makes text: embeddings and ranking need a ",
                              "model for them, or --pooling");
                      return json_response(
                          400, openai_error_json(400, "INVALID_REQUEST", message, "model"));
                    },
                .body = Body::json});
  }
}

}  // namespace rbee::server
