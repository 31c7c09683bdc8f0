#include "server/llm/tgi_routes.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "server/contract/tgi_requests.h"
#include "server/llm/sampling.h"
#include "server/worker/routes.h"

namespace rbee::server {
namespace {

enum class Form : uint8_t { one, list, stream };

std::string tgi_error(int status, std::string_view, const std::exception& error) {
  return tgi_error_json(status, error.what());
}

// A piece for each token; the text of several comes with the last of them. A piece waits for the
// next one, since the last says how the answer ended.
class TgiStream final : public Reply {
 public:
  TgiStream(std::shared_ptr<EventQueue> queue, std::string text)
      : queue_(std::move(queue)), text_(std::move(text)) {}

  void started(const StartedEvent&) override {}
  void scored(std::vector<OpenAiScored> tokens) override { tokens_ = std::move(tokens); }

  void token(std::string_view text, int32_t) override {
    text_ += text;
    for (const OpenAiScored& token : tokens_) {
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
  std::string text_;                  // so far, with the prompt where that is asked for
  std::vector<OpenAiScored> tokens_;  // of the next text
  std::optional<TgiPiece> waiting_;
  int32_t count_ = 0;  // of pieces
};

class TgiText final : public Reply {
 public:
  TgiText(std::shared_ptr<DelayedResponse> response, std::string text, bool details, Form form)
      : response_(std::move(response)), text_(std::move(text)), details_(details), form_(form) {}

  void started(const StartedEvent&) override {}
  void scored(std::vector<OpenAiScored> tokens) override {
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
  std::vector<OpenAiScored> tokens_;
};

Response answered(LlmService& service, const TgiRequest& body, Form form) {
  const std::string before = body.full_text ? body.generate.prompt : "";
  try {
    if (form == Form::stream) {
      return event_stream(
          service.stream(body.generate, [&](const std::string&, std::shared_ptr<EventQueue> queue) {
            return std::make_unique<TgiStream>(std::move(queue), before);
          }));
    }
    Response response;
    response.later = service.whole(
        body.generate, [&](const std::string&, std::shared_ptr<DelayedResponse> later) {
          return std::make_unique<TgiText>(std::move(later), before, body.details, form);
        });
    return response;
  } catch (const std::exception&) {
    return error_answer(std::current_exception(), tgi_error);
  }
}

Response generate(LlmService& service, const Request& request, Form form) {
  try {
    TgiRequest body = parse_tgi(request.body);
    if (form == Form::list && *body.generate.stream) form = Form::stream;
    if (form == Form::stream || body.details) body.generate.logprobs = 0;
    body.generate.client = request.sender();
    service.set_defaults(body.generate);
    set_open_defaults(body.generate, service.engine().model().sampling);
    const auto work = LlmService::preparation(body.generate);
    return service.prepare(work, {.client = request.sender(),
                                  .work = [&service, body = std::move(body),
                                           form] { return answered(service, body, form); },
                                  .error_body = tgi_error});
  } catch (const std::exception&) {
    return error_answer(std::current_exception(), tgi_error);
  }
}

}  // namespace

void add_tgi_routes(Router& router, LlmService& service) {
  for (const auto& [path, form] :
       {std::pair{"/generate", Form::one}, std::pair{"/generate_stream", Form::stream},
        std::pair{"/", Form::list}}) {
    router.add({.method = "POST",
                .pattern = path,
                .handler = [&service, form = form](
                               const Request& request) { return generate(service, request, form); },
                .body = Body::json});
  }
}

}  // namespace rbee::server
