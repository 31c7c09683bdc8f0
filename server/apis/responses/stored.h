#pragma once
// Stored responses: what a later request gets of them, and their JSON.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "server/apis/responses/response.h"
#include "server/llm/response_store.h"

namespace rbee::server {

// Puts the messages of earlier turns between the instructions and the input. Instructions of those
// turns are not among them.
void add_history(const StoredTurns& turns, ResponseRequest& request);

// The whole object.
std::string stored_response_json(const StoredResponse& stored);
std::string deleted_response_json(const std::string& id);
// Of one that ran when a client cancelled it.
std::string cancelled_response_json(const LiveResponse& live);

// Items of a client's stored answers, and of what those were asked, by the ids that the worker gave
// them. An answer is parsed once.
class StoredItems {
 public:
  StoredItems(ResponseStore& store, std::string client)
      : store_(store), client_(std::move(client)) {}
  // JSON; nothing if it is not there. Throws invalid_argument after 4 MiB of answers.
  std::optional<std::string> find(const std::string& id);

 private:
  ResponseStore& store_;
  const std::string client_;
  size_t bytes_ = 0;  // of the answers that were parsed
  std::map<std::string, std::map<std::string, std::string>> items_;  // by answer and id
};

// GET /v1/responses/{id}/input_items
struct ItemPage {
  std::string after;  // id of the item before the first; empty: from the start
  size_t limit = 20;
  bool descending = true;  // the newest first
};
// Throws InvalidBody.
ItemPage parse_item_page(std::string_view query);
// All items that the model read for this answer, those of earlier turns included. Nothing if there
// is no item `after`.
std::optional<std::string> input_items_json(const StoredTurns& turns, const ItemPage& page);

// GET /v1/conversations/{id}/items: all items of these turns, else as above.
std::optional<std::string> items_json(const StoredTurns& turns, const ItemPage& page);
// The item with this id; nothing: there is none.
std::optional<std::string> item_json(const StoredTurns& turns, const std::string& id);
// The turns without this item. An item whose id depends on others gets that id into its JSON.
std::optional<StoredTurns> without_item(const StoredTurns& turns, const std::string& id);

}  // namespace rbee::server
