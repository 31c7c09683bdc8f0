#pragma once
// Chats in Cohere's form: POST /v2/chat, and its answers.

#include <string>
#include <string_view>
#include <vector>

#include "server/wire/generate_request.h"
#include "server/wire/text_events.h"
#include "server/wire/worker_contract.h"

namespace rbee::server {

// What the worker cannot do and would change the answer (documents) is an error; it ignores other
// unknown fields. `stream` says whether to stream. Throws InvalidBody.
GenerateRequest parse_cohere_chat(std::string_view body);

// Shared by all parts of one answer.
struct CohereAnswer {
  std::string id;
  bool plans = false;     // reasoning is sent as the tool plan, because there are tools
  bool logprobs = false;  // show them
};

// {"id","finish_reason","message","usage","logprobs"}
std::string cohere_chat_json(const CohereAnswer& answer, const std::vector<AnswerItem>& items,
                             const EndEvent& end);

// An event of a stream: its name and its JSON.
struct CohereEvent {
  std::string name, json;
};
CohereEvent cohere_start(const CohereAnswer& answer);
// Events for an item of the answer. index: its number among texts, or among calls. An empty name
// means no event, as at a plan's begin and end.
CohereEvent cohere_item_start(const CohereAnswer& answer, const AnswerItem& item, size_t index);
CohereEvent cohere_item_delta(const CohereAnswer& answer, const AnswerItem& item,
                              const ItemPiece& piece, size_t index);
CohereEvent cohere_item_end(const CohereAnswer& answer, const AnswerItem& item, size_t index);
CohereEvent cohere_end(const EndEvent& end);
std::string cohere_error_json(std::string_view message);

}  // namespace rbee::server
