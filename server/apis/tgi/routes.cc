#include "server/apis/tgi/routes.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "server/apis/text_answers.h"
#include "server/apis/tgi/request.h"

namespace rbee::server {
namespace {

enum class Form : uint8_t { one, list, stream };

std::string tgi_error(int status, std::string_view, const std::exception& error) {
  return tgi_error_json(status, error.what());
}

// One chunk for each token; if several tokens make one text, the last has it. A chunk waits for the
// next, because the last one must say how the answer ended.
class TgiStream final : public Reply {
 public:
  TgiStream(std::shared_ptr<EventQueue> queue, std::string text)
      : queue_(std::move(queue)), text_(std::move(text)) {}

  void started(const StartedEvent&) override {}
  void scored(std::vector<TokenLogprobs> tokens) override { tokens_ = std::move(tokens); }

  void token(std::string_view text, int32_t) override {
    text_ += text;
    for (const TokenLogprobs& token : tokens_) {
      flush();
      waiting_ = {.id = token.chosen.id, .text = {}, .logprob = token.chosen.logprob};
    }
    tokens_.clear();
    if (!waiting_) waiting_.emplace();
    waiting_->text += text;
  }

  void end(const EndEvent& event, const MetricsEvent&, double) override {
    if (event.end_id) {
      flush();
      waiting_ = {.id = event.end_id, .text = {}, .logprob = {}, .special = true};
    }
    if (!waiting_) waiting_ = {.id = {}, .text = {}, .logprob = {}, .special = true};
    queue_->push_data(tgi_piece_json(++count_, *waiting_, &event, text_));
    queue_->close();
  }

  void error(const WireError& error, std::string_view message) override {
    queue_->push_data(tgi_error_json(error.status, message));
    queue_->close();
  }

 private:
  void flush() {
    if (!waiting_) return;
    queue_->push_data(tgi_piece_json(++count_, *waiting_, nullptr, ""));
    waiting_.reset();
  }

  std::shared_ptr<EventQueue> queue_;
  std::string text_;                   // so far, with the prompt if requested
  std::vector<TokenLogprobs> tokens_;  // of the next text
  std::optional<TgiPiece> waiting_;
  int32_t count_ = 0;  // of pieces
};

class TgiText final : public Reply {
 public:
  TgiText(std::shared_ptr<DelayedResponse> response, std::string text, bool details, Form form)
      : response_(std::move(response)), text_(std::move(text)), details_(details), form_(form) {}

  void started(const StartedEvent&) override {}
  void scored(std::vector<TokenLogprobs> tokens) override {
    std::ranges::move(tokens, std::back_inserter(tokens_));
  }
  void token(std::string_view text, int32_t) override { text_ += text; }

  void end(const EndEvent& event, const MetricsEvent&, double) override {
    const std::string json =
        tgi_text_json(text_, details_ ? std::optional(event) : std::nullopt, tokens_);
    response_->set(json_response(200, form_ == Form::list ? tgi_list_json(json) : json));
  }

  void error(const WireError& error, std::string_view message) override {
    response_->set(json_response(error.status, tgi_error_json(error.status, message)));
  }

 private:
  std::shared_ptr<DelayedResponse> response_;
  std::string text_;
  const bool details_;
  const Form form_;
  std::vector<TokenLogprobs> tokens_;
};

Response answer(LlmService& service, const TgiRequest& body, Form form) {
  const std::string before = body.full_text ? body.generate.prompt : "";
  if (form == Form::stream) {
    return event_stream(
        service.stream(body.generate, [&](const std::string&, std::shared_ptr<EventQueue> queue) {
          return std::make_unique<TgiStream>(std::move(queue), before);
        }));
  }
  return answer_of(
      service.whole(body.generate, [&](const std::string&, std::shared_ptr<DelayedResponse> later) {
        return std::make_unique<TgiText>(std::move(later), before, body.details, form);
      }));
}

template <Form kForm>
Response generate(LlmService& service, const Request& request) {
  return guarded(tgi_error, [&] {
    TgiRequest body = parse_tgi(request.body);
    Form form = kForm == Form::list && *body.generate.stream ? Form::stream : kForm;
    if (form == Form::stream || body.details) body.generate.logprobs = 0;
    fill_in(service, request, Defaults::open, body.generate);
    const auto work = LlmService::preparation(body.generate);
    return prepared(service, request, work, tgi_error, [&service, body = std::move(body), form] {
      return answer(service, body, form);
    });
  });
}

constexpr ChatRoute kRoutes[] = {
    {"POST", "/generate", generate<Form::one>, Body::json, ErrorForm::own},
    {"POST", "/generate_stream", generate<Form::stream>, Body::json, ErrorForm::own},
    {"POST", "/", generate<Form::list>, Body::json, ErrorForm::own},
};

}  // namespace

std::span<const ChatRoute> tgi_routes() {
  return kRoutes;
}

}  // namespace rbee::server
