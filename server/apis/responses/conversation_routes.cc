#include "server/apis/responses/conversation_routes.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "rbee/core/cat.h"
#include "server/apis/openai/error.h"
#include "server/apis/responses/conversation.h"
#include "server/apis/responses/refusals.h"
#include "server/apis/responses/stored.h"
#include "server/apis/text_answers.h"
#include "server/http/ids.h"

namespace rbee::server {
namespace {

constexpr size_t kIdBytes = 12;
constexpr const char* kId = "conversation_id";

using Held = std::shared_ptr<const Conversation>;

std::string id_of(const Request& request) {
  return std::string(request.param(kId));
}

Held find(LlmService& service, const Request& request) {
  return service.responses().find_conversation(request.sender(), id_of(request));
}

Response no_conversation(LlmService& service, const Request& request) {
  return no_conversation(service.responses(), kId, id_of(request));
}

Response no_item(const Request& request) {
  return refusal(404, "NOT_FOUND", "item_id",
                 cat("Item with id '", request.param("item_id"), "' not found."));
}

// The answer to a request about the conversation that its path names, on a thread of its own: it
// may have much to parse.
template <typename Answer>
Response about(LlmService& service, const Request& request, const Answer& answer) {
  return guarded(openai_error, [&] {
    return beside(service, request, openai_error, [&service, request, answer] {
      const Held held = find(service, request);
      return held ? answer(*held) : no_conversation(service, request);
    });
  });
}

std::shared_ptr<const StoredTurn> turn_of(const ResponseStore& store, std::string items) {
  return std::make_shared<const StoredTurn>(
      StoredTurn{.id = cat("item_", store.tag(), random_hex(kIdBytes)),
                 .input = std::make_shared<const std::string>(std::move(items)),
                 .output = "[]"});
}

Response create(LlmService& service, const Request& request) {
  return guarded(openai_error, [&] {
    ResponseStore& store = service.responses();
    ConversationRequest body = parse_conversation(request.body);
    if (!store.on()) return keeps_nothing("");
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    Conversation made{.id = cat("conv_", store.tag(), random_hex(kIdBytes)),
                      .created = std::chrono::duration_cast<std::chrono::seconds>(now).count(),
                      .metadata = body.metadata.empty() ? "{}" : body.metadata};
    if (!body.items.empty()) made.turns.push_back(turn_of(store, std::move(body.items)));
    std::string json = conversation_json(made);
    return store.add_conversation(request.sender(), std::move(made))
               ? json_response(200, std::move(json))
               : conversation_full("items");
  });
}

Response show(LlmService& service, const Request& request) {
  return guarded(openai_error, [&] {
    const Held held = find(service, request);
    return held ? json_response(200, conversation_json(*held)) : no_conversation(service, request);
  });
}

Response update(LlmService& service, const Request& request) {
  return guarded(openai_error, [&] {
    const ConversationRequest body = parse_conversation_update(request.body);
    Conversation seen;  // without its turns
    const auto changed = service.responses().change_conversation(
        request.sender(), id_of(request), [&](Conversation& conversation) {
          conversation.metadata = body.metadata;
          seen = {.id = conversation.id,
                  .created = conversation.created,
                  .metadata = conversation.metadata};
        });
    if (changed == ResponseStore::Changed::not_found) return no_conversation(service, request);
    if (changed == ResponseStore::Changed::too_large) return conversation_full("metadata");
    return json_response(200, conversation_json(seen));
  });
}

Response forget(LlmService& service, const Request& request) {
  return guarded(openai_error, [&] {
    if (!find(service, request)) return no_conversation(service, request);
    service.responses().remove(request.sender(), id_of(request));
    return json_response(200, deleted_conversation_json(id_of(request)));
  });
}

Response list(LlmService& service, const Request& request) {
  return about(service, request, [request](const Conversation& conversation) {
    const ItemPage page = parse_item_page(request.query);
    const std::optional<std::string> items = items_json(conversation.turns, page);
    if (items) return json_response(200, *items);
    return refusal(400, "INVALID_REQUEST", "after", cat("There is no item '", page.after, "'"));
  });
}

Response add(LlmService& service, const Request& request) {
  return guarded(openai_error, [&] {
    ResponseStore& store = service.responses();
    ConversationRequest body = parse_conversation_items(request.body);
    const auto turn = turn_of(store, std::move(body.items));
    bool full = false;
    const auto changed =
        store.change_conversation(request.sender(), id_of(request), [&](Conversation& now) {
          full = now.turns.size() >= kMostTurns;
          if (!full) now.turns.push_back(turn);
        });
    if (changed == ResponseStore::Changed::not_found) return no_conversation(service, request);
    if (full || changed == ResponseStore::Changed::too_large) return conversation_full("items");
    const ItemPage all{
        .after = {}, .limit = std::numeric_limits<size_t>::max(), .descending = false};
    return json_response(200, *items_json({turn}, all));
  });
}

Response show_item(LlmService& service, const Request& request) {
  return about(service, request, [request](const Conversation& conversation) {
    const std::optional<std::string> item =
        item_json(conversation.turns, std::string(request.param("item_id")));
    return item ? json_response(200, *item) : no_item(request);
  });
}

// What was added while the item was taken out stays behind the rest. False: all has changed since.
bool replace_turns(Conversation& now, const StoredTurns& before, const StoredTurns& rest) {
  if (now.turns.size() < before.size() ||
      !std::equal(before.begin(), before.end(), now.turns.begin())) {
    return false;
  }
  StoredTurns turns = rest;
  turns.insert(turns.end(), now.turns.begin() + std::ssize(before), now.turns.end());
  now.turns = std::move(turns);
  return true;
}

Response forget_item(LlmService& service, const Request& request) {
  return about(service, request, [&service, request](const Conversation& first) {
    const std::string item(request.param("item_id"));
    Conversation seen = first;
    for (bool done = false; !done;) {
      const std::optional<StoredTurns> rest = without_item(seen.turns, item);
      if (!rest) return no_item(request);
      const auto changed = service.responses().change_conversation(
          request.sender(), seen.id, [&](Conversation& now) {
            done = replace_turns(now, seen.turns, *rest);
            seen = now;
          });
      if (changed == ResponseStore::Changed::not_found) return no_conversation(service, request);
      if (changed == ResponseStore::Changed::too_large) return conversation_full("item_id");
    }
    return json_response(200, conversation_json(seen));
  });
}

constexpr ChatRoute row(std::string_view method, std::string_view path,
                        Response (*handler)(LlmService&, const Request&), Body body = Body::none) {
  return {.method = method,
          .pattern = path,
          .handler = handler,
          .body = body,
          .errors = ErrorForm::openai};
}

constexpr ChatRoute kRoutes[] = {
    row("POST", "/v1/conversations", create, Body::json),
    row("GET", "/v1/conversations/{conversation_id}", show),
    row("POST", "/v1/conversations/{conversation_id}", update, Body::json),
    row("DELETE", "/v1/conversations/{conversation_id}", forget),
    row("GET", "/v1/conversations/{conversation_id}/items", list),
    row("POST", "/v1/conversations/{conversation_id}/items", add, Body::json),
    row("GET", "/v1/conversations/{conversation_id}/items/{item_id}", show_item),
    row("DELETE", "/v1/conversations/{conversation_id}/items/{item_id}", forget_item),
};

}  // namespace

std::span<const ChatRoute> conversation_routes() {
  return kRoutes;
}

}  // namespace rbee::server
