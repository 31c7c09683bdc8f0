#include "server/apis/responses/stored.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rbee/core/cat.h"
#include "rbee/core/error.h"
#include "server/http/router.h"
#include "server/wire/json_body.h"
#include "server/wire/json_text.h"

namespace rbee::server {
namespace {

using nlohmann::json;
using Json = nlohmann::ordered_json;

constexpr size_t kMostItems = 100;                 // of a page
constexpr size_t kMostReferred = size_t{4} << 20;  // bytes of answers that a request refers to

// The parts of a message whose content is a text.
Json parts_of(const std::string& role, Json text) {
  Json part = {{"type", role == "assistant" ? "output_text" : "input_text"}};
  part["text"] = std::move(text);
  if (role == "assistant") part["annotations"] = Json::array();
  return Json::array({std::move(part)});
}

// An item of an input in the form that lists have: every field that the API fills in is there.
Json listed(const Json& item, const std::string& id) {
  Json out = {{"id", id}};
  out["type"] = "message";
  if (item.is_string()) {
    out["status"] = "completed";
    out["role"] = "user";
    out["content"] = parts_of("user", item);
    return out;
  }
  out["status"] = "completed";
  for (const auto& [name, value] : item.items()) {
    const bool ours = name == "id" || name == "type" || name == "status";
    const bool given = value.is_string() && value != "";
    if (!ours || given) out[name] = value;
  }
  if (out["type"] != "message") return out;
  const Json role = out.value("role", Json());
  const auto content = out.find("content");
  if (content != out.end() && content->is_string() && role.is_string()) {
    *content = parts_of(role.get<std::string>(), std::exchange(*content, nullptr));
  }
  return out;
}

// The items of a page, each as text: the tree of only one turn is held at a time.
class Page {
 public:
  explicit Page(const ItemPage& page) : page_(page), begun_(page.after.empty()) {}

  void add(std::vector<Json> items) {
    if (page_.descending) std::ranges::reverse(items);
    for (const Json& item : items) {
      const std::string id = item.at("id").get<std::string>();
      if (!begun_) {
        begun_ = id == page_.after;
      } else if (ids_.size() < page_.limit) {
        texts_ += cat(texts_.empty() ? "" : ",", dump_in_order(item));
        ids_.push_back(id);
      } else {
        more_ = true;
      }
    }
  }
  bool begun() const { return begun_; }
  bool over() const { return more_; }
  std::string json() const {
    Json ends = {{"first_id", nullptr}, {"last_id", nullptr}, {"has_more", more_}};
    if (!ids_.empty()) {
      ends["first_id"] = ids_.front();
      ends["last_id"] = ids_.back();
    }
    return cat(R"({"object":"list","data":[)", texts_, "],", dump(ends).substr(1));
  }

 private:
  const ItemPage page_;
  bool begun_;  // the item `after` was there
  bool more_ = false;
  std::vector<std::string> ids_;
  std::string texts_;
};

struct TurnItems {
  std::vector<Json> input, output;
};

TurnItems items_of(const StoredTurn& turn) {
  TurnItems out;
  const Json input = parse_in_order(*turn.input);
  const Json list = input.is_array() ? input : Json::array({input});
  const std::string of_answer = turn.id.substr(turn.id.find('_') + 1);
  for (const Json& item : list) {
    out.input.push_back(listed(item, cat("in_", of_answer, "-", out.input.size())));
  }
  for (Json& item : parse_in_order(turn.output)) out.output.push_back(std::move(item));
  return out;
}

// The last turn's output is what a model answered to all before.
enum class Items : uint8_t { read, all };

std::vector<Json> joined(TurnItems items, bool with_output) {
  std::vector<Json> out = std::move(items.input);
  if (with_output) std::ranges::move(items.output, std::back_inserter(out));
  return out;
}

std::vector<Json> items_at(const StoredTurns& turns, size_t turn, Items which) {
  return joined(items_of(*turns[turn]), which == Items::all || turn + 1 < turns.size());
}

// Ids in the place of doubled ones, by turn and item, so that each `after` names one item. An item
// of a client may have the id of an earlier one.
using Doubles = std::map<std::pair<size_t, size_t>, std::string>;

Doubles ids_of_doubles(const StoredTurns& turns, Items which) {
  Doubles out;
  std::unordered_map<std::string, size_t> counts;  // of items with the id
  for (size_t turn = 0; turn < turns.size(); ++turn) {
    const std::vector<Json> items = items_at(turns, turn, which);
    for (size_t i = 0; i < items.size(); ++i) {
      const std::string id = items[i].at("id").get<std::string>();
      if (counts.emplace(id, 1).second) continue;
      std::string other;
      do {
        other = cat(id, "-", ++counts[id]);
      } while (counts.contains(other));
      counts.emplace(other, 1);
      out[{turn, i}] = std::move(other);
    }
  }
  return out;
}

// The items of a turn under the ids that lists have. True: the turn itself has others.
bool rename(const Doubles& doubles, size_t turn, std::vector<Json>& items) {
  const auto first = doubles.lower_bound({turn, 0}), end = doubles.lower_bound({turn + 1, 0});
  for (auto one = first; one != end; ++one) items[one->first.second]["id"] = one->second;
  return first != end;
}

std::optional<std::string> page_of(const StoredTurns& turns, const ItemPage& page, Items which) {
  Page out(page);
  const Doubles doubles = ids_of_doubles(turns, which);
  for (size_t i = 0; i < turns.size() && !out.over(); ++i) {
    const size_t at = page.descending ? turns.size() - 1 - i : i;
    std::vector<Json> items = items_at(turns, at, which);
    rename(doubles, at, items);
    out.add(std::move(items));
  }
  if (!out.begun()) return std::nullopt;
  return out.json();
}

// A turn of these items, of which so many are the input.
std::shared_ptr<const StoredTurn> turn_of(const std::string& id, const std::vector<Json>& items,
                                          size_t inputs) {
  Json input = Json::array(), output = Json::array();
  for (size_t i = 0; i < items.size(); ++i) (i < inputs ? input : output).push_back(items[i]);
  return std::make_shared<const StoredTurn>(
      StoredTurn{.id = id,
                 .input = std::make_shared<const std::string>(dump_in_order(input)),
                 .output = dump_in_order(output)});
}

}  // namespace

void add_history(const StoredTurns& turns, ResponseRequest& request) {
  std::vector<SentMessage> history;
  std::vector<FieldError> errors;  // none: all of it was read before
  for (const auto& turn : turns) {
    for (const std::string* text : {turn->input.get(), &turn->output}) {
      const json items = text->starts_with('[') ? parse_array(*text) : json::parse(*text);
      read_response_items(items, errors, history);
    }
  }
  std::vector<SentMessage>& messages = request.generate.messages;
  messages.insert(messages.begin() + (request.instructions.empty() ? 0 : 1),
                  std::make_move_iterator(history.begin()), std::make_move_iterator(history.end()));
}

std::string stored_response_json(const StoredResponse& stored) {
  return join_response(stored.object, stored.turns.back()->output);
}

std::string deleted_response_json(const std::string& id) {
  return dump({{"id", id}, {"object", "response"}, {"deleted", true}});
}

std::string cancelled_response_json(const LiveResponse& live) {
  Json out = parse_in_order(live.object());
  out["status"] = "cancelled";
  return dump_in_order(out);
}

std::optional<std::string> StoredItems::find(const std::string& id) {
  const size_t prefix = id.find('_');
  if (prefix == std::string::npos) return std::nullopt;
  // An item's id is its answer's, with another prefix, and a number if it is not the first.
  std::string of = cat("resp_", std::string_view(id).substr(prefix + 1));
  std::shared_ptr<const StoredResponse> stored = store_.find(client_, of);
  if (!stored) stored = store_.find(client_, of.substr(0, of.rfind('-')));
  if (!stored) return std::nullopt;
  const StoredTurn& turn = *stored->turns.back();
  const auto [known, fresh] = items_.try_emplace(turn.id);
  if (fresh) {
    bytes_ += turn.bytes();
    if (bytes_ > kMostReferred) {
      fail(Code::invalid_argument, "input", "refers to items of answers of more than 4 MiB");
    }
    for (const Json& item : joined(items_of(turn), true)) {
      known->second.emplace(item.at("id").get<std::string>(), dump_in_order(item));
    }
  }
  const auto found = known->second.find(id);
  return found == known->second.end() ? std::nullopt : std::optional(found->second);
}

ItemPage parse_item_page(std::string_view query) {
  ItemPage out{.after = query_value(query, "after")};
  std::vector<FieldError> errors;
  const auto refuse = [&](const char* name, std::string constraint, std::string message) {
    errors.push_back({.field = name,
                      .constraint = std::move(constraint),
                      .message = std::move(message),
                      .value = {}});
  };
  const std::string limit = query_value(query, "limit");
  const char* const end = limit.data() + limit.size();
  if (!limit.empty()) {
    const auto [stop, error] = std::from_chars(limit.data(), end, out.limit);
    if (error != std::errc() || stop != end || out.limit < 1 || out.limit > kMostItems) {
      refuse("limit", cat("range(1..=", kMostItems, ")"), cat("must be 1 to ", kMostItems));
    }
  }
  const std::string order = query_value(query, "order");
  out.descending = order != "asc";
  if (!order.empty() && order != "asc" && order != "desc") {
    refuse("order", "one_of(asc, desc)", "must be asc or desc");
  }
  if (!errors.empty()) throw InvalidBody(std::move(errors));
  return out;
}

std::optional<std::string> input_items_json(const StoredTurns& turns, const ItemPage& page) {
  return page_of(turns, page, Items::read);
}

std::optional<std::string> items_json(const StoredTurns& turns, const ItemPage& page) {
  return page_of(turns, page, Items::all);
}

std::optional<std::string> item_json(const StoredTurns& turns, const std::string& id) {
  const Doubles doubles = ids_of_doubles(turns, Items::all);
  for (size_t turn = 0; turn < turns.size(); ++turn) {
    std::vector<Json> items = items_at(turns, turn, Items::all);
    rename(doubles, turn, items);
    const auto found = std::ranges::find_if(items, [&](const Json& it) { return it["id"] == id; });
    if (found != items.end()) return dump_in_order(*found);
  }
  return std::nullopt;
}

std::optional<StoredTurns> without_item(const StoredTurns& turns, const std::string& id) {
  const Doubles doubles = ids_of_doubles(turns, Items::all);
  StoredTurns out;
  bool found = false;
  for (size_t turn = 0; turn < turns.size(); ++turn) {
    TurnItems parts = items_of(*turns[turn]);
    size_t inputs = parts.input.size();
    std::vector<Json> items = joined(std::move(parts), true);
    bool other = rename(doubles, turn, items);
    const auto at = std::ranges::find_if(items, [&](const Json& it) { return it["id"] == id; });
    if (at != items.end()) {
      if (static_cast<size_t>(at - items.begin()) < inputs) --inputs;
      items.erase(at);
      found = other = true;
    }
    if (items.empty()) continue;
    out.push_back(other ? turn_of(turns[turn]->id, items, inputs) : turns[turn]);
  }
  return found ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace rbee::server
