#pragma once
// OpenAI's Responses API without storage: each request carries the whole chat.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/wire/text_events.h"
#include "server/wire/worker_contract.h"

namespace rbee::server {

struct ResponseRequest {
  // With OpenAI's defaults, except for sampling; `stream` says whether to stream.
  GenerateRequest generate;
  std::string instructions;
  std::string text_format;         // JSON of `text.format`; empty: none given
  std::string metadata;            // the same for `metadata`
  bool timings_per_token = false;  // llama-server's "timings" in a stream's pieces
};

// A body of POST /v1/responses: `input` is a text, or a list of messages, calls, their results and
// reasoning. A custom tool that takes any text becomes a function with one text. What the worker
// cannot do (previous_response_id, background, ...) is an error; it ignores other unknown fields,
// and tools that are no functions. Throws InvalidBody.
ResponseRequest parse_response_request(std::string_view body);

// Shared by all parts of one answer.
struct ResponseAnswer {
  std::string id;  // without prefix
  std::string model;
  int64_t created = 0;  // seconds since 1970
  ResponseRequest request;
};

std::string response_json(const ResponseAnswer& answer, const std::vector<AnswerItem>& items,
                          const EndEvent& end);

// An event of a stream; its name is also its payload's `type`.
struct NamedEvent {
  std::string name;
  std::string payload;
};
// The place of an item in the answer's output.
struct ResponsePlace {
  const AnswerItem& item;
  size_t index = 0;
  const ProgressEvent* so_far = nullptr;  // the answer's progress, if "timings" are sent
};

// The events of a stream in their order. `number` counts them, from 0. type: response.created or
// response.in_progress.
NamedEvent response_state(const ResponseAnswer& answer, std::string_view type, int& number);
// response.in_progress with llama-server's "prompt_progress".
NamedEvent response_progress(const ResponseAnswer& answer, const ProgressEvent& progress,
                             int& number);
std::vector<NamedEvent> response_item_opened(const ResponseAnswer& answer, ResponsePlace place,
                                             int& number);
// A call of a custom tool has no events before its text is complete.
std::vector<NamedEvent> response_item_grew(const ResponseAnswer& answer, ResponsePlace place,
                                           const ItemPiece& piece, int& number);
// whole: the item was not cut off.
std::vector<NamedEvent> response_item_closed(const ResponseAnswer& answer, ResponsePlace place,
                                             bool whole, int& number);
bool response_is_whole(const EndEvent& end);
// response.completed or response.incomplete
NamedEvent response_end(const ResponseAnswer& answer, const std::vector<AnswerItem>& items,
                        const EndEvent& end, int& number);
NamedEvent response_failed(const ResponseAnswer& answer, std::string_view code,
                           std::string_view message, int& number);

}  // namespace rbee::server
