#include "server/llm/routes.h"

#include "server/contract/error_map.h"
#include "server/contract/responses.h"

namespace rbee::server {
namespace {

// The default of worker-contract for /v1/infer.
constexpr float kInferTemperature = 0.7f;

bool accepts(const Request& request, std::string_view type) {
  return request.header("accept").find(type) != std::string_view::npos;
}

Response refused(const Refused& error) {
  switch (error.why()) {
    case Refused::Why::overloaded: {
      Response response = error_response(429, "OVERLOADED", error.what());
      response.headers.emplace_back("Retry-After", "1");
      return response;
    }
    case Refused::Why::stopping:
      return error_response(503, "STOPPING", error.what());
    case Refused::Why::unhealthy:
      break;
  }
  const WireError wire = wire_error(Code::device);
  return error_response(wire.status, wire.code, error.what());
}

Response error_answer(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const InvalidBody& error) {
    return json_response(wire_error(Code::invalid_argument).status, invalid_body_json(error));
  } catch (const Refused& error) {
    return refused(error);
  } catch (const Error& error) {
    const WireError wire = wire_error(error.code());
    return json_response(wire.status, error_json(wire.code, error.what()));
  }
}

Response welcome(const LlmService& service, const Request& request) {
  const WorkerInfo info = service.info();
  if (!accepts(request, "text/html")) return json_response(200, welcome_json(info));
  Response page = text_response(
      200, cat("<!doctype html><title>", info.implementation, "</title><h1>", info.implementation,
               " ", info.version,
               "</h1><p>This worker answers over HTTP: <a href=\"/health\">health</a>, "
               "<a href=\"/info\">info</a>, <a href=\"/metrics\">metrics</a>.\n"));
  page.content_type = "text/html; charset=utf-8";
  return page;
}

Response health(const LlmService& service, const Request& request) {
  const Health health = service.health();
  const int status = health.healthy ? 200 : 503;
  if (accepts(request, "text/plain") && !accepts(request, "application/json")) {
    return text_response(status, health.healthy ? "ok" : "unhealthy");
  }
  return json_response(status, to_json(health));
}

Response ready(const LlmService& service) {
  const WorkerInfo info = service.info();
  const bool ready = info.status != "stopping";
  const std::string_view state = !ready ? "error" : info.status == "busy" ? "busy" : "idle";
  return json_response(ready ? 200 : 503, ready_json(ready, state));
}

Response metrics(const LlmService& service) {
  Response response = text_response(200, service.metrics());
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  return response;
}

Response create(LlmService& service, const Request& request) {
  const std::shared_ptr<Job> job = service.create_job(parse_generate(request.body));
  return json_response(200, job_json(job->id(), cat("/v1/jobs/", job->id(), "/stream")));
}

Response event_stream() {
  Response response;
  response.content_type = "text/event-stream";
  return response;
}

Response stream(const LlmService& service, const Request& request) {
  const std::string id(request.param("job_id"));
  const std::shared_ptr<Job> job = service.find_job(id);
  if (!job) return text_response(404, cat("Job ", id, " not found"));
  Response response = event_stream();
  if (request.method == "HEAD") return response;
  response.events = job->take_events();
  if (!response.events) return text_response(500, cat("Job ", id, " has no token receiver"));
  return response;
}

Response cancel(LlmService& service, const std::string& id) {
  service.cancel(id);
  return json_response(202, cancel_json(id));
}

Response infer(LlmService& service, const Request& request) {
  GenerateRequest body = parse_generate(request.body);
  if (!body.temperature) body.temperature = kInferTemperature;
  Response response = event_stream();
  if (body.stream.value_or(false)) {
    response.events = service.infer_stream(body);
  } else {
    response.later = service.infer_text(body);
  }
  return response;
}

void add_status_routes(Router& router, LlmService& service) {
  const auto open = [&](const char* path, Handler handler) {
    router.add({.method = "GET",
                .pattern = path,
                .handler = std::move(handler),
                .access = Access::anyone});
  };
  const auto closed = [&](const char* path, Handler handler) {
    router.add({.method = "GET", .pattern = path, .handler = std::move(handler)});
  };
  open("/", [&](const Request& request) { return welcome(service, request); });
  open("/health", [&](const Request& request) { return health(service, request); });
  closed("/info", [&](const Request&) { return json_response(200, to_json(service.info())); });
  closed("/metrics", [&](const Request&) { return metrics(service); });
  closed("/v1/ready", [&](const Request&) { return ready(service); });
  closed("/v1/loading/progress",
         [](const Request&) { return text_response(503, "Model not loading"); });
}

void add_job_routes(Router& router, LlmService& service) {
  const auto post = [&](const char* path, Handler handler) {
    router.add(
        {.method = "POST", .pattern = path, .handler = std::move(handler), .body = Body::json});
  };
  // Both names stand for the same jobs.
  for (const std::string base : {"/v1/jobs", "/v1/inference"}) {
    post(base.c_str(), [&](const Request& request) { return create(service, request); });
    router.add({.method = "GET",
                .pattern = base + "/{job_id}/stream",
                .handler = [&](const Request& request) { return stream(service, request); }});
    router.add(
        {.method = "DELETE", .pattern = base + "/{job_id}", .handler = [&](const Request& request) {
           return cancel(service, std::string(request.param("job_id")));
         }});
  }
  post("/v1/infer", [&](const Request& request) { return infer(service, request); });
  post("/v1/cancel",
       [&](const Request& request) { return cancel(service, parse_cancel(request.body)); });
}

}  // namespace

Router llm_routes(LlmService& service, std::function<void()> shutdown) {
  Router router;
  router.set_error_answer(error_answer);
  add_status_routes(router, service);
  add_job_routes(router, service);
  if (shutdown) {
    router.add({.method = "POST",
                .pattern = "/v1/shutdown",
                .handler = [shutdown = std::move(shutdown)](const Request&) {
                  shutdown();
                  return json_response(202, R"({"status":"stopping"})");
                }});
  }
  return router;
}

}  // namespace rbee::server
