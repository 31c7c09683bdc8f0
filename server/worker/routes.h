#pragma once
// The paths that workers of every kind have (docs/reference/http-api.md).

#include <exception>
#include <functional>

#include "server/http/router.h"
#include "server/worker/service.h"

namespace rbee::server {

// State, streams and cancelling of jobs, and what a client is told of errors. service: outlives the
// router. shutdown: called by POST /v1/shutdown; without one there is no such path.
void add_worker_routes(Router& router, WorkerService& service, std::function<void()> shutdown);

// The answer that leads to a new job's stream.
Response job_created(const Job& job);
// An answer whose body is a stream of events.
Response event_stream(std::shared_ptr<EventQueue> events = nullptr);
// Writes the body of an error's answer.
using ErrorBody =
    std::function<std::string(int status, std::string_view code, const std::exception& error)>;
// What a client is told of an exception that a handler threw; without `body` in the project's form.
Response error_answer(const std::exception_ptr& thrown, const ErrorBody& body = nullptr);

// Adds /openapi.json, for anyone: the API's OpenAPI document.
void add_api_document(Router& router, std::string_view document);

}  // namespace rbee::server
