#include "server/llm/responses_api.h"

#include <chrono>

#include "server/contract/openai_response_object.h"
#include "server/contract/openai_responses.h"
#include "server/worker/routes.h"

namespace rbee::server {
namespace {

// Events as they come; the queue is closed after the last.
class ResponseStream final : public Reply {
 public:
  ResponseStream(std::shared_ptr<EventQueue> queue, ResponseAnswer answer)
      : queue_(std::move(queue)), answer_(std::move(answer)) {}

  void started(const StartedEvent&) override {
    for (const std::string_view type : {"response.created", "response.in_progress"}) {
      queue_->push_event(type, response_state_json(answer_, type, number_++));
    }
    queue_->push_event("response.output_item.added", response_item_added_json(answer_, number_++));
    queue_->push_event("response.content_part.added", response_part_added_json(answer_, number_++));
  }
  void token(std::string_view text, int32_t) override {
    text_ += text;
    queue_->push_event("response.output_text.delta", response_delta_json(answer_, text, number_++));
  }
  void end(const EndEvent& event, const MetricsEvent&, double) override {
    queue_->push_event("response.output_text.done",
                       response_text_done_json(answer_, text_, number_++));
    queue_->push_event("response.content_part.done",
                       response_part_done_json(answer_, text_, number_++));
    queue_->push_event("response.output_item.done",
                       response_item_done_json(answer_, text_, event, number_++));
    queue_->push_event(response_end_type(event),
                       response_end_json(answer_, text_, event, number_++));
    queue_->close();
  }
  void error(const WireError& error, std::string_view message) override {
    queue_->push_event("response.failed",
                       response_failed_json(answer_, error.code, message, number_++));
    queue_->close();
  }

 private:
  std::shared_ptr<EventQueue> queue_;
  const ResponseAnswer answer_;
  std::string text_;
  int number_ = 0;
};

// The answer in one response.
class ResponseText final : public Reply {
 public:
  ResponseText(std::shared_ptr<DelayedResponse> later, ResponseAnswer answer)
      : later_(std::move(later)), answer_(std::move(answer)) {}

  void started(const StartedEvent&) override {}
  void token(std::string_view text, int32_t) override { text_ += text; }
  void end(const EndEvent& event, const MetricsEvent&, double) override {
    later_->set(json_response(200, response_json(answer_, text_, event)));
  }
  void error(const WireError& error, std::string_view message) override {
    later_->set(json_response(error.status, openai_error_json(error.status, error.code, message)));
  }

 private:
  std::shared_ptr<DelayedResponse> later_;
  const ResponseAnswer answer_;
  std::string text_;
};

std::string error_body(int status, std::string_view code, const std::exception& error) {
  const auto* invalid = dynamic_cast<const InvalidBody*>(&error);
  const std::string param = invalid != nullptr ? invalid->errors().front().field : "";
  return openai_error_json(status, code, error.what(), param);
}

Response respond(LlmService& service, const Request& request) {
  try {
    ResponseRequest body = parse_response_request(request.body);
    if (!body.generate.user) body.generate.user = request.sender();
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto answer = [&](const std::string& id) {
      return ResponseAnswer{
          .id = id,
          .model = service.model_id(),
          .created = std::chrono::duration_cast<std::chrono::seconds>(now).count(),
          .request = body};
    };
    if (*body.generate.stream) {
      return event_stream(service.stream(
          body.generate, [&](const std::string& id, std::shared_ptr<EventQueue> queue) {
            return std::make_unique<ResponseStream>(std::move(queue), answer(id));
          }));
    }
    Response response;
    response.later = service.whole(
        body.generate, [&](const std::string& id, std::shared_ptr<DelayedResponse> later) {
          return std::make_unique<ResponseText>(std::move(later), answer(id));
        });
    return response;
  } catch (const std::exception&) {
    return error_answer(std::current_exception(), error_body);
  }
}

}  // namespace

void add_responses_route(Router& router, LlmService& service) {
  router.add({.method = "POST",
              .pattern = "/v1/responses",
              .handler = [&service](const Request& request) { return respond(service, request); },
              .body = Body::json});
}

}  // namespace rbee::server
