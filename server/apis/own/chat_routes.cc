#include "server/apis/own/chat_routes.h"

#include <charconv>
#include <utility>

#include "server/apis/own/reply.h"
#include "server/apis/own/request.h"
#include "server/apis/text_answers.h"
#include "server/llm/answer.h"
#include "server/llm/kv_event_streams.h"
#include "server/worker/routes.h"

namespace rbee::server {
namespace {

// worker-contract's default for /v1/infer.
constexpr float kInferTemperature = 0.7f;

GenerateRequest read_body(const LlmService& service, const Request& request) {
  GenerateRequest body = parse_generate(request.body);
  fill_in(service, request, Defaults::own, body);
  return body;
}

Response infer(LlmService& service, const Request& request) {
  GenerateRequest body = read_body(service, request);
  body.set_default(&engine::SamplingParams::temperature, kInferTemperature);
  const auto work = LlmService::preparation(body);
  return prepared(service, request, work, nullptr, [&service, body = std::move(body)] {
    if (body.stream.value_or(false)) {
      return event_stream(
          service.stream(body, [](const std::string&, std::shared_ptr<EventQueue> events) {
            return std::make_unique<InferStream>(std::move(events));
          }));
    }
    return answer_of(
        service.whole(body, [](const std::string&, std::shared_ptr<DelayedResponse> response) {
          return std::make_unique<InferText>(std::move(response));
        }));
  });
}

Response create_job(LlmService& service, const Request& request) {
  GenerateRequest body = read_body(service, request);
  const auto work = LlmService::preparation(body);
  return prepared(service, request, work, nullptr, [&service, body = std::move(body)] {
    return job_created(
        *service.create_job(body, [](const std::string&, std::shared_ptr<EventQueue> events) {
          return std::make_unique<JobStream>(std::move(events));
        }));
  });
}

constexpr ChatRoute kRoutes[] = {
    {"POST", "/v1/jobs", create_job, Body::json, ErrorForm::own, Operation::create_job},
    {"POST", "/v1/inference", create_job, Body::json, ErrorForm::own, Operation::create_job},
    {"POST", "/v1/infer", infer, Body::json},
};

// The number of a batch in "?from=N"; nothing: 0.
uint64_t first_batch(const Request& request) {
  const std::string text = query_value(request.query, "from");
  if (text.empty()) return 0;
  uint64_t out = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, out);
  check(error == std::errc{} && rest == end, "from", "'", text,
        "' is no number from 0 to 18446744073709551615");
  return out;
}

}  // namespace

void add_kv_event_route(Router& router, const LlmService& service,
                        std::shared_ptr<const engine::KvEventLog> log) {
  const auto streams =
      std::make_shared<KvEventStreams>(std::move(log), [&service] { return service.leaving(); });
  router.add(
      {.method = "GET", .pattern = "/kv-events", .handler = [streams](const Request& request) {
         const uint64_t from = first_batch(request);
         const bool lines = accepts(request, kLineStreamType);
         if (request.method == "HEAD") return event_stream();
         return event_stream(streams->open(from, lines ? StreamForm::lines : StreamForm::events));
       }});
}

std::span<const ChatRoute> own_chat_routes() {
  return kRoutes;
}

}  // namespace rbee::server
