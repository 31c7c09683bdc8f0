#include "server/llm/routes.h"

#include "server/llm/anthropic.h"
#include "server/llm/cohere.h"
#include "server/llm/embedding_refusals.h"
#include "server/llm/llama_routes.h"
#include "server/llm/lora_routes.h"
#include "server/llm/openai_error.h"
#include "server/llm/page.h"
#include "server/llm/responses_api.h"
#include "server/llm/sampling.h"
#include "server/llm/text_routes.h"
#include "server/llm/tgi_routes.h"
#include "server/worker/model_routes.h"
#include "server/worker/routes.h"

namespace rbee::server {
namespace {

// The default of worker-contract for /v1/infer.
constexpr float kInferTemperature = 0.7f;

GenerateRequest read_body(const LlmService& service, const Request& request) {
  GenerateRequest body = parse_generate(request.body);
  body.client = request.sender();
  service.set_defaults(body);
  return body;
}

Response infer(LlmService& service, const Request& request) {
  GenerateRequest body = read_body(service, request);
  if (!body.temperature) body.temperature = kInferTemperature;
  const auto work = LlmService::preparation(body);
  const auto answer = [&service, body = std::move(body)] {
    if (body.stream.value_or(false)) return event_stream(service.infer_stream(body));
    Response response;
    response.later = service.infer_text(body);
    return response;
  };
  return service.prepare(work, {.client = request.sender(), .work = answer});
}

Response create_job(LlmService& service, const Request& request) {
  GenerateRequest body = read_body(service, request);
  const auto work = LlmService::preparation(body);
  return service.prepare(work,
                         {.client = request.sender(), .work = [&service, body = std::move(body)] {
                            return job_created(*service.create_job(body));
                          }});
}

Response openai_answer(LlmService& service, const OpenAiRequest& body) {
  try {
    if (*body.generate.stream) return event_stream(service.openai_stream(body));
    Response response;
    response.later = service.openai_text(body);
    return response;
  } catch (const std::exception&) {
    return error_answer(std::current_exception(), openai_error);
  }
}

Response openai(LlmService& service, const Request& request,
                OpenAiRequest (*parse)(std::string_view)) {
  try {
    OpenAiRequest body = parse(request.body);
    body.generate.client = request.sender();
    service.set_defaults(body.generate);
    set_open_defaults(body.generate, service.engine().model().sampling);
    const auto work = LlmService::preparation(body);
    return service.prepare(
        work, {.client = request.sender(),
               .work = [&service, body = std::move(body)] { return openai_answer(service, body); },
               .error_body = openai_error});
  } catch (const std::exception&) {
    return error_answer(std::current_exception(), openai_error);
  }
}

void add_openai_routes(Router& router, LlmService& service) {
  add_model_routes(router, [&service] {
    const int64_t context = service.engine().model().context_length;
    std::vector<OpenAiModel> models = {{.id = service.model_id(),
                                        .parent = {},
                                        .root = {},
                                        .context_length = context,
                                        .aliases = service.options().aliases,
                                        .tags = service.options().tags}};
    for (const engine::LoraInfo& info : service.loras()) {
      models.push_back({.id = info.name,
                        .parent = service.model_id(),
                        .root = info.path,
                        .context_length = context});
    }
    return models;
  });
  for (const auto& [path, parse] : {std::pair{"/v1/chat/completions", &parse_openai_chat},
                                    std::pair{"/chat/completions", &parse_openai_chat},
                                    std::pair{"/v1/completions", &parse_openai_completion},
                                    std::pair{"/invocations", &parse_invocation_of_text}}) {
    router.add({.method = "POST",
                .pattern = path,
                .handler = [&service, parse = parse](
                               const Request& request) { return openai(service, request, parse); },
                .body = Body::json});
  }
}

}  // namespace

Router llm_routes(LlmService& service, std::function<void()> shutdown,
                  const LlmRouteOptions& options) {
  Router router;
  add_worker_routes(router, service, std::move(shutdown));
  add_page_routes(router);
  add_api_document(router, chat_api_document());
  add_text_routes(router, service);
  add_llama_routes(router, service);
  add_tgi_routes(router, service);
  add_anthropic_routes(router, service);
  add_cohere_routes(router, service);
  add_responses_route(router, service);
  add_lora_routes(router, service, options.lora_loading);
  add_embedding_refusals(router, service);
  const auto post = [&](const char* path, Handler handler) {
    router.add(
        {.method = "POST", .pattern = path, .handler = std::move(handler), .body = Body::json});
  };
  for (const char* path : {"/v1/jobs", "/v1/inference"}) {
    post(path, [&](const Request& request) { return create_job(service, request); });
  }
  add_openai_routes(router, service);
  post("/v1/infer", [&](const Request& request) { return infer(service, request); });
  return router;
}

}  // namespace rbee::server
