#pragma once
// OpenAI's conversations: bodies and objects.

#include <string>
#include <string_view>

#include "server/llm/response_store.h"

namespace rbee::server {

// Requests that added to one conversation; each change copies its list of them.
inline constexpr size_t kMostTurns = 10'000;

struct ConversationRequest {
  std::string metadata;  // JSON of an object; empty: none given
  std::string items;     // JSON of a list, without the items' ids; empty: none given
};
// Bodies of POST /v1/conversations, .../{id} and .../{id}/items. The second must have metadata, the
// third items, of the types that a response's `input` may have. They throw InvalidBody.
ConversationRequest parse_conversation(std::string_view body);
ConversationRequest parse_conversation_update(std::string_view body);
ConversationRequest parse_conversation_items(std::string_view body);

std::string conversation_json(const Conversation& conversation);
std::string deleted_conversation_json(const std::string& id);

}  // namespace rbee::server
