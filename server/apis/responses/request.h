#pragma once
// Bodies of OpenAI's Responses API.

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/wire/generate_request.h"

namespace rbee::server {

struct ResponseRequest {
  // With OpenAI's defaults, except for sampling; `stream` says whether to stream. Its messages are
  // the instructions and the input.
  GenerateRequest generate;
  std::string instructions;
  std::string previous_id;   // "previous_response_id", the stored answer that this goes on from
  std::string conversation;  // its id; the items of input and answer are added to it
  bool store = true;         // keep the answer
  bool background = false;   // make it even if nobody waits for it
  // JSON of `input`; null unless the answer is to be kept or there is a conversation.
  std::shared_ptr<const std::string> input;
  std::string text_format;         // JSON of `text.format`; empty: none given
  std::string metadata;            // the same for `metadata`
  bool timings_per_token = false;  // llama-server's "timings" in a stream's pieces
};

// A body of POST /v1/responses: `input` is a text, or a list of messages, calls, their results and
// reasoning. A custom tool that takes any text becomes a function with one text. What the worker
// cannot do (prompt, moderation, ...) is an error; it ignores other unknown fields, and tools
// that are no functions. Throws InvalidBody.
ResponseRequest parse_response_request(std::string_view body);

// JSON of the item with this id; nothing if it is not here.
using FindItem = std::function<std::optional<std::string>(const std::string& id)>;
// The same, but an item replaces each entry of type item_reference, which names it; the function
// above treats such entries as errors. Throws not_found.
ResponseRequest parse_response_request_with(std::string_view body, const FindItem& find);

// Adds the messages of such an `input`, or of an answer's `output`. Notes what is wrong in
// `errors`, under the name of the list.
void read_response_items(const nlohmann::json& items, std::vector<FieldError>& errors,
                         std::vector<SentMessage>& messages, std::string_view name = "input");

}  // namespace rbee::server
