#pragma once
// The paths that workers of every kind have (docs/reference/http-api.md).

#include <array>
#include <exception>
#include <functional>
#include <span>
#include <string_view>

#include "server/http/router.h"
#include "server/worker/service.h"

namespace rbee::server {

using WorkerRoute = ServiceRoute<WorkerService>;

// The page or what stands for it, and what happens to jobs once they are made.
std::span<const WorkerRoute> job_routes();
// Where jobs are made: two names of the same.
inline constexpr std::array<std::string_view, 2> kJobPaths = {"/v1/jobs", "/v1/inference"};
// Cancels the job that the body names.
inline constexpr std::string_view kCancelPath = "/v1/cancel";

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
