#pragma once
// Errors that are told before a route's handler is asked, in the form of the API that the path
// belongs to.

#include <string_view>

#include "server/http/message.h"

namespace rbee::server {

struct ErrorText {
  std::string_view code;     // of this server
  std::string_view message;  // for people
  std::string_view param{};  // the field that is wrong; empty: none
};

// Of the Messages API, or of models where the client asks in its way.
bool is_anthropics(const Request& request);

// Of Anthropic's paths {"type":"error","error":{"type","message"}}; of OpenAI's, and of those that
// llama-server and vLLM put beside them, {"error":{"message","type","param","code"}}; of the
// worker's own {"error":{"code","message"}}.
Response error_response(const Request& request, int status, const ErrorText& text);

}  // namespace rbee::server
