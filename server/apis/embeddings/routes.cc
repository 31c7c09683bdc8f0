#include "server/apis/embeddings/routes.h"

#include "rbee/core/cat.h"
#include "rbee/core/error.h"
#include "server/apis/embeddings/answer.h"
#include "server/apis/llama/text_request.h"
#include "server/apis/ollama/embedding.h"
#include "server/apis/openai/error.h"
#include "server/apis/openai/model_routes.h"
#include "server/worker/routes.h"

namespace rbee::server {
namespace {

using Work = Later (*)(EmbeddingService&, const Request&);

// kWork: returns the delayed answer.
template <Work kWork>
Response answering(EmbeddingService& service, const Request& request) {
  return guarded(openai_error, [&] {
    Response response;
    response.later = kWork(service, request);
    return response;
  });
}

std::string tokenized(const engine::EmbeddingEngine& engine, const TokenizeRequest& request) {
  check(request.messages.empty(), "messages", "a model for embeddings or ranking takes no chats");
  std::vector<TokenPiece> tokens;
  for (const int32_t id : engine.tokenize(request.text, {.add_special = request.add_special,
                                                         .parse_special = request.parse_special})) {
    tokens.push_back({id, request.pieces ? engine.token_bytes(id) : ""});
  }
  if (request.form == TextForm::llama_server) return tokens_json(tokens, request.pieces);
  return vllm_tokens_json(tokens, engine.info().model.context_length, request.pieces);
}

std::string text_of(const engine::EmbeddingEngine& engine, const std::vector<int32_t>& ids) {
  const int32_t known = engine.info().model.vocab_size;
  for (const int32_t id : ids) {
    check(id < known, "tokens", "token ", id, " is outside of the ", known, " known ones");
  }
  return detokenized_json(engine.detokenize(ids));
}

template <typename Body>
Body sent_by(const Request& request, Body body) {
  if constexpr (requires { body.generic; }) {
    body.generic.client = request.sender();
  } else {
    body.client = request.sender();
  }
  return body;
}

// A chat is tokenized on a side thread.
template <EmbeddingBody (*kParse)(std::string_view),
          Later (*kAnswer)(EmbeddingService&, const EmbeddingBody&)>
Later embedding(EmbeddingService& service, const Request& request) {
  EmbeddingBody body = sent_by(request, kParse(request.body));
  if (body.messages.empty()) return kAnswer(service, body);
  const auto work = [&service, body = std::move(body), span = current_span()] {
    const TraceScope scope(span);
    Response response;
    response.later = kAnswer(service, with_chat_read(service, body));
    return response;
  };
  return service.beside({.client = request.sender(), .work = work, .error_body = openai_error});
}

Later embedding_of_llama(EmbeddingService& service, const Request& request) {
  return embed_llama(service, sent_by(request, parse_llama_embedding(request.body)));
}

Later embedding_of_cohere(EmbeddingService& service, const Request& request) {
  return embed_cohere(service, sent_by(request, parse_cohere_embed(request.body)));
}

Later reranking(EmbeddingService& service, const Request& request) {
  return rerank(service, sent_by(request, parse_rerank(request.body)));
}

Later scoring(EmbeddingService& service, const Request& request) {
  return score(service, sent_by(request, parse_score(request.body)));
}

constexpr Work kEmbedding = embedding<parse_embeddings, embed>;
constexpr Work kTeiEmbedding = embedding<parse_tei_embed, embed_tei>;

// SageMaker's only route: the body's field names select one of the other routes.
Later invocation(EmbeddingService& service, const Request& request) {
  switch (parse_invocation(request.body)) {
    case Invocation::embeddings:
      return kEmbedding(service, request);
    case Invocation::rerank:
      return reranking(service, request);
    case Invocation::score:
      break;
  }
  return scoring(service, request);
}

// text-embeddings-inference's route for its model; Hugging Face's client calls it.
Later tei(EmbeddingService& service, const Request& request) {
  return service.model().ranks ? reranking(service, request) : kTeiEmbedding(service, request);
}

// kAnswer: makes the response's body on a side thread.
template <std::string (*kAnswer)(const engine::EmbeddingEngine&, std::string_view)>
Later beside(EmbeddingService& service, const Request& request) {
  const auto work = [&service, body = request.body] {
    return json_response(200, kAnswer(service.engine(), body));
  };
  return service.beside({.client = request.sender(), .work = work, .error_body = openai_error});
}

std::string tokenize(const engine::EmbeddingEngine& engine, std::string_view body) {
  return tokenized(engine, parse_tokenize(body));
}

std::string detokenize(const engine::EmbeddingEngine& engine, std::string_view body) {
  return text_of(engine, parse_detokenize(body));
}

Later refuse_text(EmbeddingService& service, const Request&) {
  fail(Code::invalid_argument, "model", service.model_id(),
       " makes no text: it is for embeddings or ranking");
}

template <Work kWork>
constexpr EmbeddingRoute post(std::string_view path, ErrorForm errors = ErrorForm::openai) {
  return {"POST", path, answering<kWork>, Body::json, errors};
}

constexpr EmbeddingRoute kEmbeddingRoutes[] = {
    post<kEmbedding>("/v1/embeddings"),     post<kEmbedding>("/embeddings"),
    post<embedding_of_llama>("/embedding"), post<embedding_of_cohere>("/v2/embed"),
    post<kTeiEmbedding>("/embed"),
};

constexpr EmbeddingRoute kRankingRoutes[] = {
    post<reranking>("/rerank"),       post<reranking>("/v1/rerank"),
    post<reranking>("/v2/rerank"),    post<reranking>("/reranking"),
    post<reranking>("/v1/reranking"), post<scoring>("/score"),
    post<scoring>("/v1/score"),       post<embedding<parse_pooling, classify>>("/classify"),
};

std::vector<OpenAiModel> models_of(const EmbeddingService& service) {
  return {{.id = service.model_id(),
           .parent = {},
           .root = {},
           .context_length = service.model().model.context_length,
           .aliases = service.options().aliases,
           .tags = service.options().tags}};
}

constexpr EmbeddingRoute kRoutes[] = {
    post<tei>("/", ErrorForm::own),          post<embedding<parse_pooling, pool>>("/pooling"),
    post<invocation>("/invocations"),        post<beside<tokenize>>("/tokenize"),
    post<beside<detokenize>>("/detokenize"),
};

constexpr auto kModelRoutes = model_routes<EmbeddingService, models_of>();

// Routes of chat workers, refused with the reason.
constexpr EmbeddingRoute kRefusals[] = {
    post<refuse_text>("/v1/jobs", ErrorForm::own),
    post<refuse_text>("/v1/inference", ErrorForm::own),
    post<refuse_text>("/v1/infer", ErrorForm::own),
    post<refuse_text>("/v1/completions"),
    post<refuse_text>("/v1/responses"),
    post<refuse_text>("/v1/chat/completions"),
    post<refuse_text>("/v1/messages", ErrorForm::anthropic),
    post<refuse_text>("/chat/completions"),
    post<refuse_text>("/responses"),
};

}  // namespace

std::span<const EmbeddingRoute> embedding_route_list() {
  return kEmbeddingRoutes;
}

std::span<const EmbeddingRoute> ranking_route_list() {
  return kRankingRoutes;
}

std::span<const EmbeddingRoute> pooling_route_list() {
  return kRoutes;
}

Router embedding_routes(EmbeddingService& service, std::function<void()> shutdown) {
  Router router;
  add_worker_routes(router, service, std::move(shutdown));
  add_api_document(router, embedding_api_files().front().text);
  for (const std::span<const EmbeddingRoute> routes :
       {embedding_route_list(), ranking_route_list(), pooling_route_list(),
        std::span<const EmbeddingRoute>(kModelRoutes), std::span<const EmbeddingRoute>(kRefusals),
        ollama_embedding_routes(), ollama_embedding_model_routes(), ollama_text_refusals()}) {
    for (const EmbeddingRoute& route : routes) router.add(route, service);
  }
  return router;
}

}  // namespace rbee::server
