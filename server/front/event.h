#pragma once
// Decides whether an event of a worker's stream still lets another worker take the request.

#include <cstdint>
#include <string>
#include <string_view>

#include "server/front/routing.h"
#include "server/http/error_form.h"
#include "server/http/mailbox.h"

namespace rbee::server {

enum class EventKind : uint8_t {
  comment,    // no event: keeps the connection open
  opening,    // about the answer, not yet model output; another worker's may replace it
  unserved,   // an error that is a 503 elsewhere: another worker may take the request
  substance,  // all others
};

// event: its lines. It knows the forms of OpenAI's chats and responses, Anthropic's messages,
// Ollama's lines, and the project's own.
EventKind kind_of_event(std::string_view event, StreamForm form);

// The last event of a stream whose worker cannot end it: an error in its API's form. wanted: of the
// request.
std::string error_event(const Request& request, const Wanted& wanted, StreamForm form,
                        const ErrorText& error);

}  // namespace rbee::server
