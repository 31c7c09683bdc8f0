#include "server/apis/responses/conversation.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "server/apis/responses/request.h"
#include "server/wire/json_object.h"
#include "server/wire/json_text.h"

namespace rbee::server {
namespace {

using nlohmann::json;
using Json = nlohmann::ordered_json;

std::string read_metadata(ObjectReader& reader, const JsonBody& body) {
  const json* metadata = reader.find("metadata");
  if (metadata == nullptr) return "";
  if (metadata->is_object()) return dump_in_order(body.in_order("metadata"));
  reader.note("metadata", "type(object)", "must be an object", metadata);
  return "";
}

// The worker gives ids: each item of a conversation has one of its own.
std::string read_items(ObjectReader& reader, const JsonBody& body,
                       std::vector<FieldError>& errors) {
  const json* items = reader.find("items");
  if (items == nullptr) return "";
  if (!items->is_array()) {
    reader.note("items", "type(array)", "must be an array of items", items);
    return "";
  }
  std::vector<SentMessage> messages;
  read_response_items(*items, errors, messages, "items");
  if (items->empty() || !errors.empty()) return "";
  Json out = body.in_order("items");
  for (Json& item : out) item.erase("id");
  return dump_in_order(out);
}

}  // namespace

ConversationRequest parse_conversation(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  ConversationRequest out;
  out.metadata = read_metadata(reader, body);
  out.items = read_items(reader, body, errors);
  if (!errors.empty()) throw InvalidBody(std::move(errors));
  return out;
}

ConversationRequest parse_conversation_update(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  ConversationRequest out{.metadata = read_metadata(reader, body), .items = {}};
  if (out.metadata.empty() && errors.empty()) {
    reader.note("metadata", "required", "is missing", nullptr);
  }
  if (!errors.empty()) throw InvalidBody(std::move(errors));
  return out;
}

ConversationRequest parse_conversation_items(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  ConversationRequest out{.metadata = {}, .items = read_items(reader, body, errors)};
  if (out.items.empty() && errors.empty()) {
    reader.note("items", "required, non_empty", "must be an array of at least one item",
                reader.find("items"));
  }
  if (!errors.empty()) throw InvalidBody(std::move(errors));
  return out;
}

std::string conversation_json(const Conversation& conversation) {
  Json out = {
      {"id", conversation.id}, {"object", "conversation"}, {"created_at", conversation.created}};
  out["metadata"] = parse_in_order(conversation.metadata);
  return dump_in_order(out);
}

std::string deleted_conversation_json(const std::string& id) {
  return dump({{"id", id}, {"object", "conversation.deleted"}, {"deleted", true}});
}

}  // namespace rbee::server
