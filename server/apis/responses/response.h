#pragma once
// Answers of OpenAI's Responses API.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/apis/responses/request.h"
#include "server/wire/text_events.h"
#include "server/wire/worker_contract.h"

namespace rbee::server {

// Shared by all parts of one answer.
struct ResponseAnswer {
  std::string id;  // without "resp_"
  std::string model;
  int64_t created = 0;  // seconds since 1970
  ResponseRequest request;

  std::string response_id() const { return "resp_" + id; }
};

std::string response_json(const ResponseAnswer& answer, const std::vector<AnswerItem>& items,
                          const EndEvent& end);
// The same in two parts, for the store: its `output`, and the object without that.
struct ResponseParts {
  std::string object;
  std::string output;
};
ResponseParts response_parts(const ResponseAnswer& answer, const std::vector<AnswerItem>& items,
                             const EndEvent& end);
std::string join_response(const std::string& object, const std::string& output);

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

// The object of an answer that is not there yet or never comes. status: queued, in_progress or
// cancelled.
std::string response_without_answer(const ResponseAnswer& answer, std::string_view status);
std::string response_failed_json(const ResponseAnswer& answer, std::string_view code,
                                 std::string_view message);

// The events of a stream in their order. `number` counts them, from 0. type: response.created,
// response.queued or response.in_progress.
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
