#pragma once
// Anthropic's answers (Messages API, version 2023-06-01), as JSON on one line.

#include <string>
#include <string_view>
#include <vector>

#include "server/wire/text_events.h"
#include "server/wire/worker_contract.h"

namespace rbee::server {

// Shared by all parts of one answer.
struct AnthropicAnswer {
  std::string id;
  std::string model;
};

std::string anthropic_message_json(const AnthropicAnswer& answer,
                                   const std::vector<AnswerItem>& items, const EndEvent& end);

// Payloads of a stream; each event's name is its `type`.
std::string anthropic_start_json(const AnthropicAnswer& answer, const StartedEvent& start);
// For the block `index`, which is the item; text: its new part.
std::string anthropic_block_start_json(const AnswerItem& item, size_t index);
std::string anthropic_delta_json(const AnswerItem& item, size_t index, std::string_view text);
std::string anthropic_block_stop_json(size_t index);
std::string anthropic_message_delta_json(const EndEvent& end);
std::string anthropic_message_stop_json();

// {"type":"error","error":{"type","message"}}; status decides the type.
std::string anthropic_error_json(int status, std::string_view message);
std::string anthropic_count_json(size_t input_tokens);

// created: ISO 8601. ids: at least one.
std::string anthropic_models_json(const std::vector<std::string>& ids, std::string_view created);
std::string anthropic_model_json(std::string_view id, std::string_view created);

}  // namespace rbee::server
