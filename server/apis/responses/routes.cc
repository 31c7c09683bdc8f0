#include "server/apis/responses/routes.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <system_error>
#include <utility>

#include "rbee/core/cat.h"
#include "rbee/core/log.h"
#include "server/apis/llama/text_request.h"
#include "server/apis/openai/error.h"
#include "server/apis/openai/response.h"
#include "server/apis/responses/conversation.h"
#include "server/apis/responses/refusals.h"
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
  StoredTurns turns;                       // earlier ones
  bool alone = true;                       // under its own id
  std::string conversation;                // and in this one; empty: in none
  std::shared_ptr<ConversationHold> hold;  // null: in none

  // With a turn that has this output, a list in JSON.
  StoredTurns turns_with(const ResponseAnswer& answer, std::string output) const {
    StoredTurns out = turns;
    out.push_back(std::make_shared<const StoredTurn>(StoredTurn{
        .id = answer.response_id(), .input = answer.request.input, .output = std::move(output)}));
    return out;
  }
  StoredResponse response(const ResponseAnswer& answer, const std::vector<AnswerItem>& items,
                          const EndEvent& end) const {
    ResponseParts parts = response_parts(answer, items, end);
    return {.object = std::move(parts.object),
            .turns = turns_with(answer, std::move(parts.output))};
  }
  // The next response may begin as soon as this one's client knows that it has ended.
  void let_go() const {
    if (hold) hold->end();
  }
  void add_to_conversation(const StoredResponse& whole) const {
    if (conversation.empty()) return;
    const auto changed = store->change_conversation(
        client, conversation, [&](Conversation& now) { now.turns.push_back(whole.turns.back()); });
    let_go();
    if (changed != ResponseStore::Changed::too_large) return;
    log(LogLevel::warn, "an answer was too large for its conversation", {{"id", conversation}});
  }
  void operator()(const ResponseAnswer& answer, const std::vector<AnswerItem>& items,
                  const EndEvent& end) const {
    if (store == nullptr) return;
    StoredResponse out = response(answer, items, end);
    add_to_conversation(out);
    if (alone) store->add(client, std::move(out));
  }
};

// What a reply to a request needs.
struct ResponseTask {
  ResponseAnswer answer;
  Keeping keep;
};

// Makes the events of an answer.
class ResponseEvents : public ItemReply {
 public:
  void progress(const ProgressEvent& progress) override {
    push(response_progress(answer_, progress, number_));
  }
  void timed(const ProgressEvent& so_far) override { so_far_ = so_far; }
  void scored(std::vector<TokenLogprobs> tokens) override {
    if (answer_.request.generate.logprobs) ItemReply::scored(std::move(tokens));
  }

 protected:
  explicit ResponseEvents(ResponseTask task)
      : answer_(std::move(task.answer)), keep_(std::move(task.keep)) {}
  virtual void push(const NamedEvent& event) = 0;
  void push_state(std::string_view type) { push(response_state(answer_, type, number_)); }
  void close_items(const EndEvent& event) {
    whole_ = response_is_whole(event);
    close_all();
  }
  void push_end(const EndEvent& event) { push(response_end(answer_, items(), event, number_)); }
  void push_failure(std::string_view code, std::string_view message) {
    push(response_failed(answer_, code, message, number_));
  }
  const ResponseAnswer& answer() const { return answer_; }
  const Keeping& keep() const { return keep_; }

 private:
  void opened(const AnswerItem& item) override {
    push_all(response_item_opened(answer_, place(item), number_));
  }
  void grew(const AnswerItem& item, const ItemPiece& piece) override {
    ResponsePlace at = place(item);
    if (answer_.request.timings_per_token) at.so_far = &so_far_;
    push_all(response_item_grew(answer_, at, piece, number_));
  }
  void closed(const AnswerItem& item) override {
    push_all(response_item_closed(answer_, place(item), whole_, number_));
  }
  ResponsePlace place(const AnswerItem& item) const {
    return {.item = item, .index = items().size() - 1};
  }
  void push_all(const std::vector<NamedEvent>& events) {
    for (const NamedEvent& event : events) push(event);
  }

  const ResponseAnswer answer_;
  const Keeping keep_;
  ProgressEvent so_far_;
  bool whole_ = true;
  int number_ = 0;
};

// Streams them to the client. Closes the queue after the last.
class ResponseStream final : public ResponseEvents {
 public:
  ResponseStream(std::shared_ptr<EventQueue> queue, ResponseTask task)
      : ResponseEvents(std::move(task)), queue_(std::move(queue)) {}

  void started(const StartedEvent&) override {
    push_state("response.created");
    push_state("response.in_progress");
  }
  void end(const EndEvent& event, const MetricsEvent&, double) override {
    close_items(event);
    keep()(answer(), items(), event);  // first: the client may go on from it at once
    push_end(event);
    queue_->close();
  }
  void error(const WireError& error, std::string_view message) override {
    keep().let_go();
    push_failure(error.code, message);
    queue_->close();
  }

 private:
  void push(const NamedEvent& event) override { queue_->push_event(event.name, event.payload); }

  const std::shared_ptr<EventQueue> queue_;
};

// Keeps them for whoever reads them. Each state is kept before its event, since clients may ask at
// once.
class BackgroundResponse final : public ResponseEvents {
 public:
  BackgroundResponse(std::shared_ptr<LiveResponse> live, ResponseTask task)
      : ResponseEvents(std::move(task)), live_(std::move(live)) {
    set("queued");
    push_state("response.created");
    push_state("response.queued");
    keep().store->begin(
        keep().client,
        {.live = live_, .turns = keep().turns_with(answer(), "[]"), .hold = keep().hold});
  }

  void started(const StartedEvent&) override {
    set("in_progress");
    push_state("response.in_progress");
  }
  void end(const EndEvent& event, const MetricsEvent&, double) override {
    if (!live_->settle()) return;
    close_items(event);
    StoredResponse out = keep().response(answer(), items(), event);
    out.live = live_;
    keep().add_to_conversation(out);
    keep().store->finish(keep().client, std::move(out));
    push_end(event);
    live_->end();
  }
  void error(const WireError& error, std::string_view message) override {
    if (!live_->settle()) return;
    keep().store->finish(keep().client,
                         {.object = response_failed_json(answer(), error.code, message),
                          .turns = keep().turns_with(answer(), "[]"),
                          .whole = false,
                          .live = live_});
    push_failure(error.code, message);
    live_->end();
  }

 private:
  void push(const NamedEvent& event) override { live_->push(event.name, event.payload); }
  void set(std::string_view status) {
    live_->set_object(response_without_answer(answer(), status));
  }

  const std::shared_ptr<LiveResponse> live_;
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
    keep_.let_go();
    later_->set(json_response(error.status, openai_error_json(error.status, error.code, message)));
  }

 private:
  std::shared_ptr<DelayedResponse> later_;
  const ResponseAnswer answer_;
  const Keeping keep_;
};

ResponseTask task_of(LlmService& service, const ResponseRequest& body, const Keeping& keep,
                     const std::string& job) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {.answer = {.id = service.responses().tag() + job,
                     .model = service.answering_model(body.generate),
                     .created = std::chrono::duration_cast<std::chrono::seconds>(now).count(),
                     .request = body},
          .keep = keep};
}

// Answers at once; the response is made whether or not its client stays.
Response answer_in_background(LlmService& service, const ResponseRequest& body,
                              const Keeping& keep) {
  std::shared_ptr<LiveResponse> live;
  std::shared_ptr<EventQueue> events;  // of the client that asks; null without `stream`
  std::string queued;
  const size_t kept = *body.generate.stream ? service.responses().most_event_bytes() : 0;
  try {
    (void)service.stream(body.generate, [&](const std::string& job, const auto&) {
      ResponseTask task = task_of(service, body, keep, job);
      live = std::make_shared<LiveResponse>(task.answer.response_id(), job, kept);
      events = live->read(-1);  // before the first event: their room may end at any
      auto reply = std::make_unique<BackgroundResponse>(live, std::move(task));
      queued = live->object();
      return reply;
    });
  } catch (...) {
    if (live) service.responses().remove(keep.client, live->id());
    throw;
  }
  return events ? event_stream(events) : json_response(200, queued);
}

Response answer(LlmService& service, const ResponseRequest& body, const Keeping& keep) {
  if (body.background) return answer_in_background(service, body, keep);
  return one_answer<ResponseStream, ResponseText>(
      service, body.generate,
      [&](const std::string& job) { return task_of(service, body, keep, job); });
}

using Stored = std::shared_ptr<const StoredResponse>;

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

// The turns before the request's own. If there are none such as it names, or they leave no room for
// its own, `refused` becomes the answer.
StoredTurns turns_before(LlmService& service, const Request& request, const ResponseRequest& body,
                         std::optional<Response>& refused) {
  ResponseStore& store = service.responses();
  if (!body.previous_id.empty()) {
    const Stored before = store.find(request.sender(), body.previous_id);
    if (before && before->whole) return before->turns;
    refused = no_previous(service, body.previous_id);
  }
  if (!body.conversation.empty()) {
    const auto held = store.find_conversation(request.sender(), body.conversation);
    const bool room = held && held->turns.size() < kMostTurns &&
                      store.has_room(*held, sizeof(StoredTurn) + body.input->size());
    if (room) return held->turns;
    refused = held ? conversation_full("conversation")
                   : no_conversation(store, "conversation", body.conversation);
  }
  return {};
}

ResponseRequest parse(LlmService& service, const Request& request) {
  StoredItems items(service.responses(), request.sender());
  return parse_response_request_with(request.body,
                                     [&](const std::string& id) { return items.find(id); });
}

Response respond(LlmService& service, const Request& request) {
  return guarded(openai_error, [&] {
    ResponseRequest body = parse(service, request);
    std::shared_ptr<ConversationHold> hold;
    if (!body.conversation.empty()) {
      hold = service.responses().hold_conversation(request.sender(), body.conversation);
      if (!hold) return conversation_locked();
    }
    std::optional<Response> refused;
    StoredTurns before = turns_before(service, request, body, refused);
    if (refused) return std::move(*refused);
    if (body.background && !service.responses().on()) return keeps_nothing("background");
    body.store = body.store && service.responses().on();
    const bool kept = body.store || !body.conversation.empty();
    Keeping keep{.store = kept ? &service.responses() : nullptr,
                 .client = request.sender(),
                 .turns = std::move(before),
                 .alone = body.store,
                 .conversation = body.conversation,
                 .hold = std::move(hold)};
    fill_in(service, request, Defaults::open, body.generate);
    auto work = LlmService::preparation(body.generate);
    if (!keep.turns.empty()) work = std::max(work, LlmService::Preparation::text);
    return prepared(service, request, work, openai_error,
                    [&service, body = std::move(body), keep = std::move(keep)]() mutable {
                      // With an error it lets go of the conversation before that is sent.
                      const Keeping own = std::move(keep);
                      add_history(own.turns, body);
                      return answer(service, body, own);
                    });
  });
}

Response count(LlmService& service, const Request& request) {
  return guarded(openai_error, [&] {
    return beside(service, request, openai_error, [&service, request] {
      ResponseRequest body = parse(service, request);
      std::optional<Response> refused;
      const StoredTurns before = turns_before(service, request, body, refused);
      if (refused) return std::move(*refused);
      add_history(before, body);
      return json_response(200, input_tokens_json(service.count_tokens(body.generate)));
    });
  });
}

// The response that a path names: still made in the background, or stored.
struct Kept {
  std::optional<RunningResponse> running;
  Stored stored;

  explicit operator bool() const { return running || stored; }
  const StoredTurns& turns() const { return running ? running->turns : stored->turns; }
  // Null: it was not made in the background.
  std::shared_ptr<LiveResponse> live() const { return running ? running->live : stored->live; }
  std::string json() const {
    return running ? running->live->object() : stored_response_json(*stored);
  }
};

Kept find(LlmService& service, const Request& request) {
  const std::string id(request.param("response_id"));
  Kept out{.running = service.responses().find_running(request.sender(), id), .stored = {}};
  if (!out.running) out.stored = service.responses().find(request.sender(), id);
  return out;
}

// The answer to a request about the response that its path names.
template <typename Answer>
Response about(LlmService& service, const Request& request, const Answer& answer) {
  return guarded(openai_error, [&] {
    const Kept kept = find(service, request);
    return kept ? answer(kept) : no_response(service, std::string(request.param("response_id")));
  });
}

// The events of one that was made, or is made, in the background.
Response show_events(const Kept& kept, const std::string& query) {
  const std::string text = query_value(query, "starting_after");
  int64_t after = -1;
  if (!text.empty()) {
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, after);
    if (error != std::errc() || stop != end || after < 0) {
      return refusal(400, "INVALID_REQUEST", "starting_after", "must be the number of an event");
    }
  }
  const std::shared_ptr<LiveResponse> live = kept.live();
  if (!live || !live->readable()) {
    return refusal(400, "UNSUPPORTED", "stream",
                   "Only responses that were created with background and stream can be streamed, "
                   "and while the worker has room for their events");
  }
  const std::shared_ptr<EventQueue> events = live->read(after);
  return events ? event_stream(events)
                : refusal(429, "OVERLOADED", "stream", "Too many read this response at once");
}

Response show(LlmService& service, const Request& request) {
  return about(service, request, [&](const Kept& kept) {
    const std::string stream = query_value(request.query, "stream");
    if (stream == "true") return show_events(kept, request.query);
    if (!stream.empty() && stream != "false") {
      return refusal(400, "INVALID_REQUEST", "stream", "must be true or false");
    }
    return beside(service, request, openai_error,
                  [kept] { return json_response(200, kept.json()); });
  });
}

Response show_items(LlmService& service, const Request& request) {
  return about(service, request, [&](const Kept& kept) {
    const ItemPage page = parse_item_page(request.query);
    return beside(service, request, openai_error, [kept, page] {
      const std::optional<std::string> items = input_items_json(kept.turns(), page);
      if (items) return json_response(200, *items);
      return refusal(400, "INVALID_REQUEST", "after", cat("There is no item '", page.after, "'"));
    });
  });
}

void end_work(LlmService& service, LiveResponse& live) {
  live.end();
  service.cancel(live.job());
}

Response forget(LlmService& service, const Request& request) {
  return about(service, request, [&](const Kept& kept) {
    const std::string& id = kept.turns().back()->id;
    service.responses().remove(request.sender(), id);
    if (kept.running && kept.running->live->settle()) end_work(service, *kept.running->live);
    return json_response(200, deleted_response_json(id));
  });
}

// The state is the answer's before the engine knows of it. One that has ended stays as it is.
Response cancel(LlmService& service, const Request& request) {
  return about(service, request, [&](const Kept& kept) {
    const std::shared_ptr<LiveResponse> live = kept.live();
    if (!live) {
      return refusal(400, "INVALID_REQUEST", "response_id",
                     "Only responses that were created with background can be cancelled");
    }
    if (kept.running && live->settle()) {
      service.responses().finish(request.sender(), {.object = cancelled_response_json(*live),
                                                    .turns = kept.turns(),
                                                    .whole = false,
                                                    .live = live});
      end_work(service, *live);
    }
    // By whoever settled it, who may be about to keep it.
    const Kept now = find(service, request);
    return now ? json_response(200, now.json())
               : json_response(200, cancelled_response_json(*live));
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

// GET, which may ask for events.
constexpr ChatRoute showing(std::string_view path) {
  return {.method = "GET",
          .pattern = path,
          .handler = show,
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
    showing("/v1/responses/{response_id}"),
    showing("/responses/{response_id}"),
    row("POST", "/v1/responses/{response_id}/cancel", cancel),
    row("POST", "/responses/{response_id}/cancel", cancel),
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
