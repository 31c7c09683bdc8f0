#include "server/worker/routes.h"

#include "server/http/auth.h"
#include "server/http/process_metrics.h"
#include "server/http/tracer.h"
#include "server/wire/error_map.h"
#include "server/wire/text_events.h"
#include "server/wire/worker_contract.h"

namespace rbee::server {
namespace {

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

Response welcome(WorkerService& service, const Request& request) {
  if (!accepts(request, "text/html")) return json_response(200, welcome_json(service.info()));
  return page_response(service.page());
}

Response health(WorkerService& service, const Request& request) {
  const bool healthy = service.healthy();
  const int status = healthy ? 200 : 503;
  if (accepts(request, "text/plain") && !accepts(request, "application/json")) {
    return text_response(status, healthy ? "ok" : "unhealthy");
  }
  return json_response(status, service.health_json());
}

Response ready(WorkerService& service, const Request&) {
  const WorkerInfo info = service.info();
  const bool ready = info.status != "stopping";
  const std::string_view state = service.leaving()       ? "draining"
                                 : !ready                ? "error"
                                 : info.status == "busy" ? "busy"
                                                         : "idle";
  return json_response(ready ? 200 : 503, ready_json(ready, state));
}

Response metrics(WorkerService& service, const Request&) {
  Response response =
      text_response(200, service.metrics() + process_metrics() + trace_metrics(service.tracer()));
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  // llama-server's field: its figures restart with the process.
  response.headers = {{"Process-Start-Time-Unix", std::to_string(service.started_at())}};
  return response;
}

Response stream(WorkerService& service, const Request& request) {
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

Response cancel_job(WorkerService& service, const Request& request) {
  return cancel(service, std::string(request.param("job_id")));
}

Response cancel_named(WorkerService& service, const Request& request) {
  return cancel(service, parse_cancel(request.body));
}

// SageMaker's probe.
Response ping(WorkerService& service, const Request&) {
  return text_response(service.healthy() ? 200 : 503, "");
}

// vLLM's.
Response load(WorkerService& service, const Request&) {
  return json_response(200, load_json(service.load()));
}

Response show_info(WorkerService& service, const Request&) {
  return json_response(200, to_json(service.info()));
}

Response version(WorkerService& service, const Request&) {
  return json_response(200, version_json(service.info().version));
}

Response loading_progress(WorkerService&, const Request&) {
  return text_response(503, "Model not loading");
}

constexpr WorkerRoute open(std::string_view method, std::string_view path,
                           Response (*handler)(WorkerService&, const Request&)) {
  return {.method = method, .pattern = path, .handler = handler, .access = Access::anyone};
}

constexpr WorkerRoute kStateRoutes[] = {
    open("GET", "/health", health),
    open("GET", "/v1/health", health),
    open("GET", "/health/live", health),
    open("GET", "/ping", ping),
    {.method = "POST",
     .pattern = "/ping",
     .handler = ping,
     .access = Access::anyone,
     .changes = false},
    {"GET", "/load", load},
    {"GET", "/info", show_info},
    {"GET", "/metrics", metrics},
    {"GET", "/v1/ready", ready},
    open("GET", "/ready", ready),
    open("GET", "/health/ready", ready),
    open("GET", "/version", version),
    {"GET", "/v1/loading/progress", loading_progress},
};

// Takes the job's events: whoever asks later gets none.
constexpr WorkerRoute events(std::string_view path) {
  return {.method = "GET",
          .pattern = path,
          .handler = stream,
          .operation = Operation::stream_job,
          .changes = true};
}

// Both names of the path reach the same jobs.
constexpr WorkerRoute kJobRoutes[] = {
    {.method = "GET",
     .pattern = "/",
     .handler = welcome,
     .operation = Operation::page,
     .access = Access::anyone},
    events("/v1/jobs/{job_id}/stream"),
    {"DELETE", "/v1/jobs/{job_id}", cancel_job},
    events("/v1/inference/{job_id}/stream"),
    {"DELETE", "/v1/inference/{job_id}", cancel_job},
    {"POST", "/v1/cancel", cancel_named, Body::json, ErrorForm::own, Operation::cancel_job},
};

}  // namespace

std::span<const WorkerRoute> job_routes() {
  return kJobRoutes;
}

bool accepts(const Request& request, std::string_view type) {
  return request.header("accept").find(type) != std::string_view::npos;
}

Response page_response(Page page) {
  Response response = text_response(200, std::move(page.html));
  response.content_type = "text/html; charset=utf-8";
  response.headers = {{"Content-Security-Policy", std::move(page.policy)},
                      {"Cache-Control", "no-cache"},
                      {"Referrer-Policy", "no-referrer"}};
  return response;
}

Response job_created(const Job& job) {
  return json_response(200, job_json(job.id(), cat("/v1/jobs/", job.id(), "/stream")));
}

Response event_stream(std::shared_ptr<EventQueue> events) {
  Response response;
  const bool lines = events && events->form() == StreamForm::lines;
  response.content_type = lines ? kLineStreamType : kEventStreamType;
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
  for (const WorkerRoute& route : kStateRoutes) router.add(route, service);
  for (const WorkerRoute& route : kJobRoutes) router.add(route, service);
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
