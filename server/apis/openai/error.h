#pragma once
// Errors in OpenAI's form.

#include <exception>
#include <string>
#include <string_view>

namespace rbee::server {

// The body of what error_answer() answers. A prompt that is too long gets the code and the words
// that clients know, whatever `code` is.
std::string openai_error(int status, std::string_view code, const std::exception& error);

}  // namespace rbee::server
