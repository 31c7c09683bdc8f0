#include "server/apis/cohere/routes.h"

#include "server/apis/cohere/request.h"
#include "server/apis/text_answers.h"
#include "server/llm/answer.h"
#include "server/llm/item_reply.h"

namespace rbee::server {
namespace {

// Streams events. Closes the queue after message-end or an error.
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

Response chat(LlmService& service, const Request& request) {
  return guarded(error_body, [&] {
    GenerateRequest body = parse_cohere_chat(request.body);
    fill_in(service, request, Defaults::open, body);
    const auto work = LlmService::preparation(body);
    return prepared(service, request, work, error_body, [&service, body = std::move(body)] {
      return one_answer<CohereStream, CohereText>(service, body, [&](const std::string& id) {
        return CohereAnswer{
            .id = id, .plans = !body.chat.tools.empty(), .logprobs = body.logprobs.has_value()};
      });
    });
  });
}

constexpr ChatRoute kRoutes[] = {{"POST", "/v2/chat", chat, Body::json, ErrorForm::openai}};

}  // namespace

std::span<const ChatRoute> cohere_routes() {
  return kRoutes;
}

}  // namespace rbee::server
