#include "server/llm/responses_api.h"

#include <chrono>

#include "server/contract/openai_response_object.h"
#include "server/contract/openai_responses.h"
#include "server/llm/item_reply.h"
#include "server/llm/openai_error.h"
#include "server/llm/sampling.h"
#include "server/worker/routes.h"

namespace rbee::server {
namespace {

// Events as they come; the queue is closed after the last.
class ResponseStream final : public ItemReply {
 public:
  ResponseStream(std::shared_ptr<EventQueue> queue, ResponseAnswer answer)
      : queue_(std::move(queue)), answer_(std::move(answer)) {}

  void started(const StartedEvent&) override {
    push(response_state(answer_, "response.created", number_));
    push(response_state(answer_, "response.in_progress", number_));
  }
  void progress(const ProgressEvent& progress) override {
    push(response_progress(answer_, progress, number_));
  }
  void timed(const ProgressEvent& so_far) override { so_far_ = so_far; }
  void scored(std::vector<OpenAiScored> tokens) override {
    if (answer_.request.generate.logprobs) ItemReply::scored(std::move(tokens));
  }
  void end(const EndEvent& event, const MetricsEvent&, double) override {
    whole_ = response_is_whole(event);
    close_all();
    push(response_end(answer_, items(), event, number_));
    queue_->close();
  }
  void error(const WireError& error, std::string_view message) override {
    push(response_failed(answer_, error.code, message, number_));
    queue_->close();
  }

 private:
  void opened(const AnswerItem& item) override {
    push(response_item_opened(answer_, place(item), number_));
  }
  void grew(const AnswerItem& item, const ItemPiece& piece) override {
    ResponsePlace at = place(item);
    if (answer_.request.timings_per_token) at.so_far = &so_far_;
    push(response_item_grew(answer_, at, piece, number_));
  }
  void closed(const AnswerItem& item) override {
    push(response_item_closed(answer_, place(item), whole_, number_));
  }
  ResponsePlace place(const AnswerItem& item) const {
    return {.item = item, .index = items().size() - 1};
  }
  void push(const NamedEvent& event) { queue_->push_event(event.name, event.payload); }
  void push(const std::vector<NamedEvent>& events) {
    for (const NamedEvent& event : events) push(event);
  }

  std::shared_ptr<EventQueue> queue_;
  const ResponseAnswer answer_;
  ProgressEvent so_far_;
  bool whole_ = true;
  int number_ = 0;
};

// The answer in one response.
class ResponseText final : public ItemReply {
 public:
  ResponseText(std::shared_ptr<DelayedResponse> later, ResponseAnswer answer)
      : later_(std::move(later)), answer_(std::move(answer)) {}

  void end(const EndEvent& event, const MetricsEvent&, double) override {
    close_all();
    later_->set(json_response(200, response_json(answer_, items(), event)));
  }
  void error(const WireError& error, std::string_view message) override {
    later_->set(json_response(error.status, openai_error_json(error.status, error.code, message)));
  }

 private:
  std::shared_ptr<DelayedResponse> later_;
  const ResponseAnswer answer_;
};

Response answered(LlmService& service, const ResponseRequest& body) {
  try {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto answer = [&](const std::string& id) {
      return ResponseAnswer{
          .id = id,
          .model = service.answering_model(body.generate),
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
    return error_answer(std::current_exception(), openai_error);
  }
}

Response respond(LlmService& service, const Request& request) {
  try {
    ResponseRequest body = parse_response_request(request.body);
    body.generate.client = request.sender();
    service.set_defaults(body.generate);
    set_open_defaults(body.generate, service.engine().model().sampling);
    const auto work = LlmService::preparation(body.generate);
    return service.prepare(
        work, {.client = request.sender(),
               .work = [&service, body = std::move(body)] { return answered(service, body); },
               .error_body = openai_error});
  } catch (const std::exception&) {
    return error_answer(std::current_exception(), openai_error);
  }
}

}  // namespace

void add_responses_route(Router& router, LlmService& service) {
  for (const char* path : {"/v1/responses", "/responses"}) {
    router.add({.method = "POST",
                .pattern = path,
                .handler = [&service](const Request& request) { return respond(service, request); },
                .body = Body::json});
  }
}

}  // namespace rbee::server
