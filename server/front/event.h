#pragma once
// What an event of a worker's stream means for sending the request to another worker.

#include <cstdint>
#include <string>
#include <string_view>

#include "server/front/routing.h"
#include "server/http/error_form.h"

namespace rbee::server {

enum class EventKind : uint8_t {
  comment,   // no event: keeps the connection open
  opening,   // tells of the answer, nothing of what the model says; another worker's may replace it
  unserved,  // an error that ends the stream, but not the request: what has the status 503
             // elsewhere
  substance,  // all others
};

// event: its lines. Forms: OpenAI's chats and responses, Anthropic's messages, the project's own.
EventKind kind_of_event(std::string_view event);

// The last event of a stream that a worker cannot end, as its API tells errors. wanted: of the
// request.
std::string error_event(const Request& request, const Wanted& wanted, const ErrorText& error);

}  // namespace rbee::server
