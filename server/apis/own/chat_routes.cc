#include "server/apis/own/chat_routes.h"

#include "server/apis/own/reply.h"
#include "server/apis/own/request.h"
#include "server/apis/text_answers.h"
#include "server/llm/answer.h"

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

}  // namespace

std::span<const ChatRoute> own_chat_routes() {
  return kRoutes;
}

}  // namespace rbee::server
