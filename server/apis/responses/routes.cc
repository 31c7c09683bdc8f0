#include "server/apis/responses/routes.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "server/apis/llama/text_request.h"
#include "server/apis/openai/error.h"
#include "server/apis/openai/response.h"
#include "server/apis/responses/response.h"
#include "server/apis/responses/stored.h"
#include "server/apis/text_answers.h"
#include "server/llm/answer.h"
#include "server/llm/item_reply.h"

namespace rbee::server {
namespace {

// Where an answer is kept.
struct Keeping {
  ResponseStore* store = nullptr;  // null: nowhere
  std::string client;
  StoredTurns turns;  // earlier ones

  void operator()(const ResponseAnswer& answer, const std::vector<AnswerItem>& items,
                  const EndEvent& end) {
    if (store == nullptr) return;
    ResponseParts parts = response_parts(answer, items, end);
    turns.push_back(
        std::make_shared<const StoredTurn>(StoredTurn{.id = answer.response_id(),
                                                      .input = answer.request.input,
                                                      .output = std::move(parts.output)}));
    store->add(client, {.object = std::move(parts.object), .turns = std::move(turns)});
  }
};

// What a reply to a request needs.
struct ResponseTask {
  ResponseAnswer answer;
  Keeping keep;
};

// Streams events. Closes the queue after the last.
class ResponseStream final : public ItemReply {
 public:
  ResponseStream(std::shared_ptr<EventQueue> queue, ResponseTask task)
      : queue_(std::move(queue)), answer_(std::move(task.answer)), keep_(std::move(task.keep)) {}

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
    keep_(answer_, items(), event);  // first: the client may go on from it at once
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
  Keeping keep_;
  ProgressEvent so_far_;
  bool whole_ = true;
  int number_ = 0;
};

// The answer in one response.
class ResponseText final : public ItemReply {
 public:
  ResponseText(std::shared_ptr<DelayedResponse> later, ResponseTask task)
      : later_(std::move(later)), answer_(std::move(task.answer)), keep_(std::move(task.keep)) {}

  void end(const EndEvent& event, const MetricsEvent&, double) override {
    close_all();
    keep_(answer_, items(), event);
    later_->set(json_response(200, response_json(answer_, items(), event)));
  }
  void error(const WireError& error, std::string_view message) override {
    later_->set(json_response(error.status, openai_error_json(error.status, error.code, message)));
  }

 private:
  std::shared_ptr<DelayedResponse> later_;
  const ResponseAnswer answer_;
  Keeping keep_;
};

Response answer(LlmService& service, const ResponseRequest& body, const Keeping& keep) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::string& prefix = service.responses().prefix();
  const std::string tag = prefix.substr(prefix.find('_') + 1);  // "resp_" stands before all ids
  return one_answer<ResponseStream, ResponseText>(
      service, body.generate, [&](const std::string& id) {
        return ResponseTask{
            .answer = {.id = tag + id,
                       .model = service.answering_model(body.generate),
                       .created = std::chrono::duration_cast<std::chrono::seconds>(now).count(),
                       .request = body},
            .keep = keep};
      });
}

using Stored = std::shared_ptr<const StoredResponse>;

Response refusal(int status, std::string_view code, std::string_view param, std::string message) {
  Response out = json_response(status, openai_error_json(status, code, message, param));
  out.reason = {.code = std::string(code), .field = std::string(param), .constraint = {}};
  return out;
}

// In OpenAI's words, which clients search for.
Response no_previous(LlmService& service, const std::string& id) {
  return refusal(400, "previous_response_not_found", "previous_response_id",
                 service.responses().on()
                     ? cat("Previous response with id '", id, "' not found.")
                     : std::string("This worker keeps no responses (--response-store-mib 0): send "
                                   "the whole chat as input"));
}

Response no_response(LlmService& service, const std::string& id) {
  return refusal(
      404, "NOT_FOUND", "response_id",
      cat("Response with id '", id, "' not found",
          service.responses().on() ? "."
                                   : ": this worker keeps no responses (--response-store-mib 0)."));
}

// Null if the request names none, or the one that it names is not there.
Stored previous(LlmService& service, const Request& request, const ResponseRequest& body) {
  if (body.previous_id.empty()) return nullptr;
  return service.responses().find(request.sender(), body.previous_id);
}

ResponseRequest parse(LlmService& service, const Request& request) {
  StoredItems items(service.responses(), request.sender());
  return parse_response_request_with(request.body,
                                     [&](const std::string& id) { return items.find(id); });
}

Response respond(LlmService& service, const Request& request) {
  return guarded(openai_error, [&] {
    ResponseRequest body = parse(service, request);
    const Stored before = previous(service, request, body);
    if (!before && !body.previous_id.empty()) return no_previous(service, body.previous_id);
    body.store = body.store && service.responses().on();
    Keeping keep{.store = body.store ? &service.responses() : nullptr,
                 .client = request.sender(),
                 .turns = before ? before->turns : StoredTurns{}};
    fill_in(service, request, Defaults::open, body.generate);
    auto work = LlmService::preparation(body.generate);
    if (before) work = std::max(work, LlmService::Preparation::text);
    return prepared(service, request, work, openai_error,
                    [&service, body = std::move(body), keep = std::move(keep)]() mutable {
                      add_history(keep.turns, body);
                      return answer(service, body, keep);
                    });
  });
}

Response count(LlmService& service, const Request& request) {
  return guarded(openai_error, [&] {
    return beside(service, request, openai_error, [&service, request] {
      ResponseRequest body = parse(service, request);
      const Stored before = previous(service, request, body);
      if (!before && !body.previous_id.empty()) return no_previous(service, body.previous_id);
      if (before) add_history(before->turns, body);
      return json_response(200, input_tokens_json(service.count_tokens(body.generate)));
    });
  });
}

// The answer to a request about the stored response that its path names.
template <typename Answer>
Response about(LlmService& service, const Request& request, const Answer& answer) {
  return guarded(openai_error, [&] {
    const std::string id(request.param("response_id"));
    const Stored stored = service.responses().find(request.sender(), id);
    return stored ? answer(stored) : no_response(service, id);
  });
}

Response show(LlmService& service, const Request& request) {
  return about(service, request, [&](const Stored& stored) {
    if (query_value(request.query, "stream") == "true") {
      return refusal(400, "UNSUPPORTED", "stream", "A response is streamed only while it is made");
    }
    return beside(service, request, openai_error,
                  [stored] { return json_response(200, stored_response_json(*stored)); });
  });
}

Response show_items(LlmService& service, const Request& request) {
  return about(service, request, [&](const Stored& stored) {
    const ItemPage page = parse_item_page(request.query);
    return beside(service, request, openai_error, [stored, page] {
      const std::optional<std::string> items = input_items_json(stored->turns, page);
      if (items) return json_response(200, *items);
      return refusal(400, "INVALID_REQUEST", "after", cat("There is no item '", page.after, "'"));
    });
  });
}

Response forget(LlmService& service, const Request& request) {
  return about(service, request, [&](const Stored& stored) {
    const std::string& id = stored->turns.back()->id;
    service.responses().remove(request.sender(), id);
    return json_response(200, deleted_response_json(id));
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

constexpr ChatRoute row(std::string_view method, std::string_view path,
                        Response (*handler)(LlmService&, const Request&)) {
  return {.method = method, .pattern = path, .handler = handler, .errors = ErrorForm::openai};
}

constexpr ChatRoute kRoutes[] = {
    answering("/v1/responses"),
    answering("/responses"),
    {"POST", "/v1/responses/input_tokens", count, Body::json, ErrorForm::openai},
    {"POST", "/responses/input_tokens", count, Body::json, ErrorForm::openai},
    row("GET", "/v1/responses/{response_id}", show),
    row("GET", "/responses/{response_id}", show),
    row("DELETE", "/v1/responses/{response_id}", forget),
    row("DELETE", "/responses/{response_id}", forget),
    row("GET", "/v1/responses/{response_id}/input_items", show_items),
    row("GET", "/responses/{response_id}/input_items", show_items),
};

}  // namespace

std::span<const ChatRoute> responses_routes() {
  return kRoutes;
}

}  // namespace rbee::server
