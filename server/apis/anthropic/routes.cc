#include "server/apis/anthropic/routes.h"

#include "server/apis/anthropic/request.h"
#include "server/apis/anthropic/response.h"
#include "server/apis/text_answers.h"
#include "server/llm/answer.h"
#include "server/llm/item_reply.h"

namespace rbee::server {
namespace {

// Streams events. Closes the queue after message_stop or an error.
class AnthropicStream final : public ItemReply {
 public:
  AnthropicStream(std::shared_ptr<EventQueue> queue, AnthropicAnswer answer)
      : queue_(std::move(queue)), answer_(std::move(answer)) {}

  void started(const StartedEvent& event) override {
    queue_->push_event("message_start", anthropic_start_json(answer_, event));
    queue_->push_event("ping", R"({"type":"ping"})");
  }
  void end(const EndEvent& event, const MetricsEvent&, double) override {
    close_all();
    queue_->push_event("message_delta", anthropic_message_delta_json(event));
    queue_->push_event("message_stop", anthropic_message_stop_json());
    queue_->close();
  }
  void error(const WireError& error, std::string_view message) override {
    queue_->push_event("error", anthropic_error_json(error.status, message));
    queue_->close();
  }

 private:
  void opened(const AnswerItem& item) override {
    queue_->push_event("content_block_start", anthropic_block_start_json(item, place()));
  }
  void grew(const AnswerItem& item, const ItemPiece& piece) override {
    queue_->push_event("content_block_delta", anthropic_delta_json(item, place(), piece.text));
  }
  void closed(const AnswerItem&) override {
    queue_->push_event("content_block_stop", anthropic_block_stop_json(place()));
  }
  size_t place() const { return items().size() - 1; }

  std::shared_ptr<EventQueue> queue_;
  const AnthropicAnswer answer_;
};

// The answer in one response.
class AnthropicText final : public ItemReply {
 public:
  AnthropicText(std::shared_ptr<DelayedResponse> response, AnthropicAnswer answer)
      : response_(std::move(response)), answer_(std::move(answer)) {}

  void end(const EndEvent& event, const MetricsEvent&, double) override {
    close_all();
    response_->set(json_response(200, anthropic_message_json(answer_, items(), event)));
  }
  void error(const WireError& error, std::string_view message) override {
    response_->set(json_response(error.status, anthropic_error_json(error.status, message)));
  }

 private:
  std::shared_ptr<DelayedResponse> response_;
  const AnthropicAnswer answer_;
};

// The error for a prompt that is too long, in words that clients recognise.
std::string error_body(int status, std::string_view, const std::exception& error) {
  if (const auto* too_long = dynamic_cast<const engine::PromptTooLong*>(&error)) {
    return anthropic_error_json(status, cat("prompt is too long: ", too_long->tokens(),
                                            " tokens > ", too_long->context(), " maximum"));
  }
  return anthropic_error_json(status, error.what());
}

Response messages(LlmService& service, const Request& request) {
  return guarded(error_body, [&] {
    GenerateRequest body = parse_anthropic(request.body);
    fill_in(service, request, Defaults::open, body);
    const auto work = LlmService::preparation(body);
    return prepared(service, request, work, error_body, [&service, body = std::move(body)] {
      return one_answer<AnthropicStream, AnthropicText>(service, body, [&](const std::string& id) {
        return AnthropicAnswer{.id = "msg_" + id, .model = service.answering_model(body)};
      });
    });
  });
}

Response count(LlmService& service, const Request& request) {
  return guarded(error_body, [&] {
    return beside(service, request, error_body, [&service, body = request.body] {
      const size_t tokens = service.count_tokens(parse_anthropic_count(body));
      return json_response(200, anthropic_count_json(tokens));
    });
  });
}

constexpr ChatRoute kRoutes[] = {
    {.method = "POST",
     .pattern = "/v1/messages",
     .handler = messages,
     .body = Body::json,
     .errors = ErrorForm::anthropic,
     .named_events = true},
    {"POST", "/v1/messages/count_tokens", count, Body::json, ErrorForm::anthropic},
};

}  // namespace

std::span<const ChatRoute> anthropic_routes() {
  return kRoutes;
}

}  // namespace rbee::server
