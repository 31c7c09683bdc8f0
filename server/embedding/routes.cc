#include "server/embedding/routes.h"

#include "server/contract/openai_responses.h"
#include "server/contract/text_requests.h"
#include "server/worker/model_routes.h"
#include "server/worker/routes.h"

namespace rbee::server {
namespace {

std::string openai_error(int status, std::string_view code, const std::exception& error) {
  const auto* invalid = dynamic_cast<const InvalidBody*>(&error);
  const std::string param = invalid != nullptr ? invalid->errors().front().field : "";
  return openai_error_json(status, code, error.what(), param);
}

using Later = std::shared_ptr<DelayedResponse>;

Response failed() {
  return error_answer(std::current_exception(), openai_error);
}

// work: gives the answer to come.
Handler answering(std::function<Later(const Request&)> work) {
  return [work = std::move(work)](const Request& request) {
    try {
      Response response;
      response.later = work(request);
      return response;
    } catch (const std::exception&) {
      return failed();
    }
  };
}

// answer: the body, from a thread beside the connections'.
Handler answering_beside(EmbeddingService& service,
                         std::string (*answer)(const engine::EmbeddingEngine&, std::string_view)) {
  return answering([&service, answer](const Request& request) {
    return service.beside({.client = request.sender(),
                           .work =
                               [&service, answer, body = request.body] {
                                 return json_response(200, answer(service.engine(), body));
                               },
                           .error_body = openai_error});
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

// A chat becomes tokens beside the connections' thread.
Handler embedding(EmbeddingService& service, EmbeddingBody (*parse)(std::string_view),
                  Later (EmbeddingService::*answer)(const EmbeddingBody&)) {
  return answering([&service, parse, answer](const Request& request) -> Later {
    EmbeddingBody body = sent_by(request, parse(request.body));
    if (body.messages.empty()) return (service.*answer)(body);
    const auto work = [&service, answer, body = std::move(body), span = current_span()] {
      const TraceScope scope(span);
      Response response;
      response.later = (service.*answer)(service.with_chat_read(body));
      return response;
    };
    return service.beside({.client = request.sender(), .work = work, .error_body = openai_error});
  });
}

Handler reranking(EmbeddingService& service) {
  return answering([&service](const Request& request) {
    return service.rerank(sent_by(request, parse_rerank(request.body)));
  });
}

Handler scoring(EmbeddingService& service) {
  return answering([&service](const Request& request) {
    return service.score(sent_by(request, parse_score(request.body)));
  });
}

// SageMaker's one route: a body's names say which of the others it is for.
Response invoke(EmbeddingService& service, const Request& request) {
  try {
    switch (parse_invocation(request.body)) {
      case Invocation::embeddings:
        return embedding(service, parse_embeddings, &EmbeddingService::embed)(request);
      case Invocation::rerank:
        return reranking(service)(request);
      case Invocation::score:
        break;
    }
    return scoring(service)(request);
  } catch (const std::exception&) {
    return failed();
  }
}

// What chat workers answer.
constexpr const char* kTextRoutes[] = {
    "/v1/jobs",        "/v1/inference",     "/v1/infer",
    "/v1/completions", "/v1/responses",     "/v1/chat/completions",
    "/v1/messages",    "/chat/completions", "/responses"};

}  // namespace

Router embedding_routes(EmbeddingService& service, std::function<void()> shutdown) {
  Router router;
  add_worker_routes(router, service, std::move(shutdown));
  add_api_document(router, embedding_api_files().front().text);
  const auto post = [&](const char* path, Handler handler) {
    router.add(
        {.method = "POST", .pattern = path, .handler = std::move(handler), .body = Body::json});
  };
  for (const char* path : {"/v1/embeddings", "/embeddings"}) {
    post(path, embedding(service, parse_embeddings, &EmbeddingService::embed));
  }
  post("/embed", embedding(service, parse_tei_embed, &EmbeddingService::embed_tei));
  // text-embeddings-inference's route of its model, which Hugging Face's client asks.
  post("/", service.model().ranks
                ? reranking(service)
                : embedding(service, parse_tei_embed, &EmbeddingService::embed_tei));
  post("/pooling", embedding(service, parse_pooling, &EmbeddingService::pool));
  post("/classify", embedding(service, parse_pooling, &EmbeddingService::classify));
  post("/invocations", [&service](const Request& request) { return invoke(service, request); });
  post("/embedding", answering([&service](const Request& request) {
         return service.embed_llama(sent_by(request, parse_llama_embedding(request.body)));
       }));
  post("/v2/embed", answering([&service](const Request& request) {
         return service.embed_cohere(sent_by(request, parse_cohere_embed(request.body)));
       }));
  for (const char* path : {"/rerank", "/v1/rerank", "/v2/rerank", "/reranking", "/v1/reranking"}) {
    post(path, reranking(service));
  }
  for (const char* path : {"/score", "/v1/score"}) {
    post(path, scoring(service));
  }
  post("/tokenize",
       answering_beside(service, [](const engine::EmbeddingEngine& engine, std::string_view body) {
         return tokenized(engine, parse_tokenize(body));
       }));
  post("/detokenize",
       answering_beside(service, [](const engine::EmbeddingEngine& engine, std::string_view body) {
         return text_of(engine, parse_detokenize(body));
       }));
  for (const char* path : kTextRoutes) {
    post(path, answering([&service](const Request&) -> Later {
           fail(Code::invalid_argument, "model", service.model_id(),
                " makes no text: it is for embeddings or ranking");
         }));
  }
  add_model_routes(router, [&service] {
    return std::vector<OpenAiModel>{{.id = service.model_id(),
                                     .parent = {},
                                     .root = {},
                                     .context_length = service.model().model.context_length,
                                     .aliases = service.options().aliases,
                                     .tags = service.options().tags}};
  });
  return router;
}

}  // namespace rbee::server
