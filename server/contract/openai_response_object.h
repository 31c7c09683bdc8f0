#pragma once
// OpenAI's Responses API without its memory: nothing is stored, so a request carries the whole
// chat.

#include <cstdint>
#include <string>
#include <string_view>

#include "server/contract/responses.h"

namespace rbee::server {

struct ResponseRequest {
  GenerateRequest generate;  // OpenAI's defaults are filled in; `stream` says whether to stream
  std::string instructions;
};

// A body of POST /v1/responses: `input` is a text or a list of messages. What the worker does not
// do (tools, previous_response_id, background, ...) is an error, other unknown fields are ignored.
// Throws InvalidBody.
ResponseRequest parse_response_request(std::string_view body);

// What all parts of one answer have in common.
struct ResponseAnswer {
  std::string id;  // without prefix
  std::string model;
  int64_t created = 0;  // seconds since 1970
  ResponseRequest request;
};

std::string response_json(const ResponseAnswer& answer, std::string_view text, const EndEvent& end);

// Payloads of a stream, each sent under the name that is its `type`; `number` counts them from 0.
// type: response.created or response.in_progress.
std::string response_state_json(const ResponseAnswer& answer, std::string_view type, int number);
std::string response_item_added_json(const ResponseAnswer& answer, int number);
std::string response_part_added_json(const ResponseAnswer& answer, int number);
std::string response_delta_json(const ResponseAnswer& answer, std::string_view text, int number);
std::string response_text_done_json(const ResponseAnswer& answer, std::string_view text,
                                    int number);
std::string response_part_done_json(const ResponseAnswer& answer, std::string_view text,
                                    int number);
std::string response_item_done_json(const ResponseAnswer& answer, std::string_view text,
                                    const EndEvent& end, int number);
// response.completed or response.incomplete: response_end_type().
std::string response_end_json(const ResponseAnswer& answer, std::string_view text,
                              const EndEvent& end, int number);
std::string_view response_end_type(const EndEvent& end);
// response.failed
std::string response_failed_json(const ResponseAnswer& answer, std::string_view code,
                                 std::string_view message, int number);

}  // namespace rbee::server
