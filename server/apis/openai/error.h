#pragma once
// Errors in OpenAI's form.

#include <exception>
#include <string>
#include <string_view>

namespace rbee::server {

// The body for error_answer(). A too long prompt always gets the code and words that clients know,
// whatever `code` is.
std::string openai_error(int status, std::string_view code, const std::exception& error);

}  // namespace rbee::server
