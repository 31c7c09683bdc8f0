#include "server/llm/routes.h"

#include "server/worker/routes.h"

namespace rbee::server {
namespace {

// The default of worker-contract for /v1/infer.
constexpr float kInferTemperature = 0.7f;

// Who does not say who asks is known by the address.
GenerateRequest read_body(const Request& request) {
  GenerateRequest body = parse_generate(request.body);
  if (!body.user) body.user = request.remote;
  return body;
}

Response infer(LlmService& service, const Request& request) {
  GenerateRequest body = read_body(request);
  if (!body.temperature) body.temperature = kInferTemperature;
  if (body.stream.value_or(false)) return event_stream(service.infer_stream(body));
  Response response;
  response.later = service.infer_text(body);
  return response;
}

}  // namespace

Router llm_routes(LlmService& service, std::function<void()> shutdown) {
  Router router;
  add_worker_routes(router, service, std::move(shutdown));
  const auto post = [&](const char* path, Handler handler) {
    router.add(
        {.method = "POST", .pattern = path, .handler = std::move(handler), .body = Body::json});
  };
  for (const char* path : {"/v1/jobs", "/v1/inference"}) {
    post(path, [&](const Request& request) {
      return job_created(*service.create_job(read_body(request)));
    });
  }
  post("/v1/infer", [&](const Request& request) { return infer(service, request); });
  return router;
}

}  // namespace rbee::server
