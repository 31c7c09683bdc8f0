#pragma once
// Errors in the form of the API that a request's route belongs to.

#include <string_view>

#include "server/http/message.h"

namespace rbee::server {

struct ErrorText {
  std::string_view code;     // of this server
  std::string_view message;  // for people
  std::string_view param{};  // the field that is wrong; empty: none
};

// The request's errors, and its answer's headers, have Anthropic's form.
bool is_anthropics(const Request& request);

// In the form that request.errors says.
Response error_response(const Request& request, int status, const ErrorText& text);

// "error.type" of an HTTP status: OpenAI's name, and Anthropic's.
std::string_view openai_error_type(int status);
std::string_view anthropic_error_type(int status);

}  // namespace rbee::server
