#include "server/llm/cohere.h"

#include "server/contract/cohere_requests.h"
#include "server/llm/answer.h"
#include "server/llm/item_reply.h"
#include "server/llm/sampling.h"
#include "server/worker/routes.h"

namespace rbee::server {
namespace {

// Events as they come; the queue is closed after message-end or an error.
class CohereStream final : public ItemReply {
 public:
  CohereStream(std::shared_ptr<EventQueue> queue, CohereAnswer answer)
      : queue_(std::move(queue)), answer_(std::move(answer)) {}

  void started(const StartedEvent&) override { push(cohere_start(answer_)); }
  void end(const EndEvent& event, const MetricsEvent&, double) override {
    close_all();
    push(cohere_end(event));
    queue_->close();
  }
  void error(const WireError&, std::string_view message) override {
    queue_->push_event("error", cohere_error_json(message));
    queue_->close();
  }

 private:
  void opened(const AnswerItem& item) override {
    push(cohere_item_start(answer_, item, place(item)));
  }
  void grew(const AnswerItem& item, const ItemPiece& piece) override {
    push(cohere_item_delta(answer_, item, piece, place(item)));
  }
  void closed(const AnswerItem& item) override {
    const CohereEvent event = cohere_item_end(answer_, item, place(item));
    if (event.name.empty()) return;
    push(event);
    ++(item.kind == AnswerItem::Kind::call ? calls_ : texts_);
  }
  size_t place(const AnswerItem& item) const {
    return item.kind == AnswerItem::Kind::call ? calls_ : texts_;
  }
  void push(const CohereEvent& event) {
    if (!event.name.empty()) queue_->push_event(event.name, event.json);
  }

  std::shared_ptr<EventQueue> queue_;
  const CohereAnswer answer_;
  size_t texts_ = 0, calls_ = 0;  // that have ended
};

// The answer in one response.
class CohereText final : public ItemReply {
 public:
  CohereText(std::shared_ptr<DelayedResponse> response, CohereAnswer answer)
      : response_(std::move(response)), answer_(std::move(answer)) {}

  void end(const EndEvent& event, const MetricsEvent&, double) override {
    close_all();
    response_->set(json_response(200, cohere_chat_json(answer_, items(), event)));
  }
  void error(const WireError& error, std::string_view message) override {
    response_->set(json_response(error.status, cohere_error_json(message)));
  }

 private:
  std::shared_ptr<DelayedResponse> response_;
  const CohereAnswer answer_;
};

std::string error_body(int, std::string_view, const std::exception& error) {
  return cohere_error_json(error.what());
}

Response answered(LlmService& service, const GenerateRequest& body) {
  try {
    const auto answer = [&](const std::string& id) {
      return CohereAnswer{
          .id = id, .plans = !body.chat.tools.empty(), .logprobs = body.logprobs.has_value()};
    };
    return one_answer<CohereStream, CohereText>(service, body, answer);
  } catch (const std::exception&) {
    return error_answer(std::current_exception(), error_body);
  }
}

Response chat(LlmService& service, const Request& request) {
  try {
    GenerateRequest body = parse_cohere_chat(request.body);
    body.client = request.sender();
    service.set_defaults(body);
    set_open_defaults(body, service.engine().model().sampling);
    const auto work = LlmService::preparation(body);
    return service.prepare(
        work, {.client = request.sender(),
               .work = [&service, body = std::move(body)] { return answered(service, body); },
               .error_body = error_body});
  } catch (const std::exception&) {
    return error_answer(std::current_exception(), error_body);
  }
}

}  // namespace

void add_cohere_routes(Router& router, LlmService& service) {
  router.add({.method = "POST",
              .pattern = "/v2/chat",
              .handler = [&service](const Request& request) { return chat(service, request); },
              .body = Body::json});
}

}  // namespace rbee::server
