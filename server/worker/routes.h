#pragma once
// Paths of workers of every kind (docs/reference/http-api.md).

#include <exception>
#include <functional>
#include <span>
#include <string_view>

#include "server/http/router.h"
#include "server/worker/service.h"

namespace rbee::server {

using WorkerRoute = ServiceRoute<WorkerService>;

// The page or its replacement, and the routes of existing jobs.
std::span<const WorkerRoute> job_routes();

// Adds routes for state, streams and cancelling of jobs, and the form of errors. The service must
// outlive the router. shutdown: called by POST /v1/shutdown; empty: no such path.
void add_worker_routes(Router& router, WorkerService& service, std::function<void()> shutdown);

// Whether the request's Accept names the type.
bool accepts(const Request& request, std::string_view type);
Response page_response(Page page);
// The answer that names a new job's stream.
Response job_created(const Job& job);
// An answer whose body is a stream of events.
Response event_stream(std::shared_ptr<EventQueue> events = nullptr);
// Returns the body of an error's answer.
using ErrorBody =
    std::function<std::string(int status, std::string_view code, const std::exception& error)>;
// The answer for an exception of a handler; without `body` in the project's form.
Response error_answer(const std::exception_ptr& thrown, const ErrorBody& body = nullptr);
// The result of `answer`, or the answer of `errors` for its exception.
template <typename Answer>
Response guarded(const ErrorBody& errors, const Answer& answer) {
  try {
    return answer();
  } catch (const std::exception&) {
    return error_answer(std::current_exception(), errors);
  }
}

// Adds /openapi.json, without a key: the API's OpenAPI document.
void add_api_document(Router& router, std::string_view document);

}  // namespace rbee::server
