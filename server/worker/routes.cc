#include "server/worker/routes.h"

#include "server/contract/error_map.h"
#include "server/contract/responses.h"
#include "server/http/auth.h"
#include "server/http/process_metrics.h"
#include "server/http/tracer.h"

namespace rbee::server {
namespace {

bool accepts(const Request& request, std::string_view type) {
  return request.header("accept").find(type) != std::string_view::npos;
}

struct Refusal {
  int status;
  std::string_view code;
};

Refusal refusal_of(const Refused& error) {
  switch (error.why()) {
    case Refused::Why::overloaded:
      return {429, "OVERLOADED"};
    case Refused::Why::stopping:
      return {503, "STOPPING"};
    case Refused::Why::unhealthy:
      break;
  }
  const WireError wire = wire_error(Code::device);
  return {wire.status, wire.code};
}

std::string own_body(std::string_view code, const std::exception& error) {
  const auto* invalid = dynamic_cast<const InvalidBody*>(&error);
  return invalid != nullptr ? invalid_body_json(*invalid) : error_json(code, error.what());
}

Response welcome(const WorkerService& service, const Request& request) {
  if (!accepts(request, "text/html")) return json_response(200, welcome_json(service.info()));
  Page page = service.page();
  Response response = text_response(200, std::move(page.html));
  response.content_type = "text/html; charset=utf-8";
  response.headers = {{"Content-Security-Policy", std::move(page.policy)},
                      {"Cache-Control", "no-cache"},
                      {"Referrer-Policy", "no-referrer"}};
  return response;
}

Response health(const WorkerService& service, const Request& request) {
  const bool healthy = service.healthy();
  const int status = healthy ? 200 : 503;
  if (accepts(request, "text/plain") && !accepts(request, "application/json")) {
    return text_response(status, healthy ? "ok" : "unhealthy");
  }
  return json_response(status, service.health_json());
}

int ping_status(const WorkerService& service) {
  return service.healthy() ? 200 : 503;
}

Response ready(const WorkerService& service) {
  const WorkerInfo info = service.info();
  const bool ready = info.status != "stopping";
  const std::string_view state = service.leaving()       ? "draining"
                                 : !ready                ? "error"
                                 : info.status == "busy" ? "busy"
                                                         : "idle";
  return json_response(ready ? 200 : 503, ready_json(ready, state));
}

Response metrics(const WorkerService& service) {
  Response response =
      text_response(200, service.metrics() + process_metrics() + trace_metrics(service.tracer()));
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  // llama-server's: figures begin anew with the process.
  response.headers = {{"Process-Start-Time-Unix", std::to_string(service.started_at())}};
  return response;
}

Response stream(const WorkerService& service, const Request& request) {
  const std::string id(request.param("job_id"));
  const std::shared_ptr<Job> job = service.find_job(id);
  if (!job) return text_response(404, cat("Job ", id, " not found"));
  Response response = event_stream();
  if (request.method == "HEAD") return response;
  response.events = job->take_events();
  if (!response.events) return text_response(500, cat("Job ", id, " has no token receiver"));
  return response;
}

Response cancel(WorkerService& service, const std::string& id) {
  service.cancel(id);
  return json_response(202, cancel_json(id));
}

void add_status_routes(Router& router, WorkerService& service) {
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
  for (const char* path : {"/health", "/v1/health", "/health/live"}) {
    open(path, [&](const Request& request) { return health(service, request); });
  }
  // SageMaker's probe.
  for (const char* method : {"GET", "POST"}) {
    router.add({.method = method,
                .pattern = "/ping",
                .handler = [&](const Request&) { return text_response(ping_status(service), ""); },
                .access = Access::anyone});
  }
  // vLLM's.
  closed("/load", [&](const Request&) { return json_response(200, load_json(service.load())); });
  closed("/info", [&](const Request&) { return json_response(200, to_json(service.info())); });
  closed("/metrics", [&](const Request&) { return metrics(service); });
  closed("/v1/ready", [&](const Request&) { return ready(service); });
  for (const char* path : {"/ready", "/health/ready"}) {
    open(path, [&](const Request&) { return ready(service); });
  }
  open("/version",
       [&](const Request&) { return json_response(200, version_json(service.info().version)); });
  closed("/v1/loading/progress",
         [](const Request&) { return text_response(503, "Model not loading"); });
}

void add_job_routes(Router& router, WorkerService& service) {
  // Both names stand for the same jobs.
  for (const std::string base : {"/v1/jobs", "/v1/inference"}) {
    router.add({.method = "GET",
                .pattern = base + "/{job_id}/stream",
                .handler = [&](const Request& request) { return stream(service, request); }});
    router.add(
        {.method = "DELETE", .pattern = base + "/{job_id}", .handler = [&](const Request& request) {
           return cancel(service, std::string(request.param("job_id")));
         }});
  }
  router.add(
      {.method = "POST",
       .pattern = "/v1/cancel",
       .handler =
           [&](const Request& request) { return cancel(service, parse_cancel(request.body)); },
       .body = Body::json});
}

}  // namespace

Response job_created(const Job& job) {
  return json_response(200, job_json(job.id(), cat("/v1/jobs/", job.id(), "/stream")));
}

Response event_stream(std::shared_ptr<EventQueue> events) {
  Response response;
  response.content_type = "text/event-stream";
  response.events = std::move(events);
  return response;
}

Response error_answer(const std::exception_ptr& thrown, const ErrorBody& body) {
  const auto answer = [&](int status, std::string_view code, const std::exception& error) {
    Response response =
        json_response(status, body ? body(status, code, error) : own_body(code, error));
    response.reason.code = code;
    return response;
  };
  try {
    std::rethrow_exception(thrown);
  } catch (const InvalidBody& error) {
    const WireError wire = wire_error(Code::invalid_argument);
    Response response = answer(wire.status, wire.code, error);
    if (error.errors().empty()) return response;
    const FieldError& first = error.errors().front();
    response.reason.field = first.field;
    response.reason.constraint = first.constraint;
    return response;
  } catch (const Refused& error) {
    const Refusal refusal = refusal_of(error);
    Response response = answer(refusal.status, refusal.code, error);
    if (refusal.status == 429) response.headers.emplace_back("Retry-After", "1");
    return response;
  } catch (const Error& error) {
    const WireError wire = wire_error(error.code());
    return answer(wire.status, wire.code, error);
  }
}

void add_api_document(Router& router, std::string_view document) {
  router.add(
      {.method = "GET",
       .pattern = "/openapi.json",
       .handler = [document](const Request&) { return json_response(200, std::string(document)); },
       .access = Access::anyone});
}

void add_worker_routes(Router& router, WorkerService& service, std::function<void()> shutdown) {
  router.set_error_answer([](const std::exception_ptr& thrown) { return error_answer(thrown); });
  add_status_routes(router, service);
  add_job_routes(router, service);
  if (shutdown) {
    router.add({.method = "POST",
                .pattern = "/v1/shutdown",
                .handler = [shutdown = std::move(shutdown)](const Request& request) {
                  if (request.key_name != kOwnKey) {
                    return error_response(403, "FORBIDDEN", "Only the worker's token may stop it");
                  }
                  shutdown();
                  return json_response(202, R"({"status":"stopping"})");
                }});
  }
}

}  // namespace rbee::server
