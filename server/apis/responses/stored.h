#pragma once
// Stored responses: what a later request gets of them, and their JSON.

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/apis/responses/response.h"
#include "server/llm/response_store.h"

namespace rbee::server {

// Puts the messages of earlier turns between the instructions and the input. Instructions of those
// turns are not among them.
void add_history(const StoredTurns& turns, ResponseRequest& request);

// The whole object.
std::string stored_response_json(const StoredResponse& stored);
std::string deleted_response_json(const std::string& id);

// GET /v1/responses/{id}/input_items
struct ItemPage {
  std::string after;  // id of the item before the first; empty: from the start
  size_t limit = 20;
  bool descending = true;  // the newest first
};
// Throws InvalidBody.
ItemPage parse_item_page(std::string_view query);
// All items that the model read for this answer, which has those of earlier turns. Nothing if there
// is no item `after`.
std::optional<std::string> input_items_json(const StoredTurns& turns, const ItemPage& page);

}  // namespace rbee::server
