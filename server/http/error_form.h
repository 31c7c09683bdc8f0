#pragma once
// Errors in the form of the request's API.

#include <string_view>

#include "server/http/message.h"

namespace rbee::server {

struct ErrorText {
  std::string_view code;     // of this server
  std::string_view message;  // for people
  std::string_view param{};  // the invalid field; empty: none
};

// Whether the request's errors, and its answer's headers, have Anthropic's form.
bool is_anthropics(const Request& request);

// In the form of request.errors.
Response error_response(const Request& request, int status, const ErrorText& text);

// "error.type" for an HTTP status: OpenAI's name, and Anthropic's.
std::string_view openai_error_type(int status);
std::string_view anthropic_error_type(int status);

}  // namespace rbee::server
