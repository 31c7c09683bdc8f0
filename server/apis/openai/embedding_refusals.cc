#include "server/apis/openai/embedding_refusals.h"

#include "rbee/core/cat.h"
#include "server/apis/openai/response.h"

namespace rbee::server {
namespace {

Response refuse(LlmService& service, const Request&) {
  const std::string message = cat(service.model_id(), " makes text: embeddings and ranking need a ",
                                  "model for them, or --pooling");
  return json_response(400, openai_error_json(400, "INVALID_REQUEST", message, "model"));
}

constexpr ChatRoute refusal(std::string_view path) {
  return {"POST", path, refuse, Body::json, ErrorForm::openai};
}

constexpr ChatRoute kRoutes[] = {
    refusal("/v1/embeddings"), refusal("/embeddings"), refusal("/embedding"), refusal("/v2/embed"),
    refusal("/rerank"),        refusal("/v1/rerank"),  refusal("/v2/rerank"), refusal("/reranking"),
    refusal("/v1/reranking"),  refusal("/score"),      refusal("/v1/score"),  refusal("/pooling"),
    refusal("/classify"),      refusal("/embed"),
};

}  // namespace

std::span<const ChatRoute> embedding_refusals() {
  return kRoutes;
}

}  // namespace rbee::server
