#include "server/apis/responses/routes.h"

#include <chrono>

#include "server/apis/llama/text_request.h"
#include "server/apis/openai/error.h"
#include "server/apis/openai/response.h"
#include "server/apis/responses/response.h"
#include "server/apis/text_answers.h"
#include "server/llm/answer.h"
#include "server/llm/item_reply.h"

namespace rbee::server {
namespace {

// Streams events. Closes the queue after the last.
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
  void scored(std::vector<TokenLogprobs> tokens) override {
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

Response answer(LlmService& service, const ResponseRequest& body) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return one_answer<ResponseStream, ResponseText>(
      service, body.generate, [&](const std::string& id) {
        return ResponseAnswer{
            .id = id,
            .model = service.answering_model(body.generate),
            .created = std::chrono::duration_cast<std::chrono::seconds>(now).count(),
            .request = body};
      });
}

Response respond(LlmService& service, const Request& request) {
  return guarded(openai_error, [&] {
    ResponseRequest body = parse_response_request(request.body);
    fill_in(service, request, Defaults::open, body.generate);
    const auto work = LlmService::preparation(body.generate);
    return prepared(service, request, work, openai_error,
                    [&service, body = std::move(body)] { return answer(service, body); });
  });
}

Response count(LlmService& service, const Request& request) {
  return guarded(openai_error, [&] {
    return beside(service, request, openai_error, [&service, body = request.body] {
      const size_t tokens = service.count_tokens(parse_response_request(body).generate);
      return json_response(200, input_tokens_json(tokens));
    });
  });
}

constexpr ChatRoute answering(std::string_view path) {
  return {.method = "POST",
          .pattern = path,
          .handler = respond,
          .body = Body::json,
          .errors = ErrorForm::openai,
          .named_events = true};
}

constexpr ChatRoute kRoutes[] = {
    answering("/v1/responses"),
    answering("/responses"),
    {"POST", "/v1/responses/input_tokens", count, Body::json, ErrorForm::openai},
    {"POST", "/responses/input_tokens", count, Body::json, ErrorForm::openai},
};

}  // namespace

std::span<const ChatRoute> responses_routes() {
  return kRoutes;
}

}  // namespace rbee::server
