#include "server/apis/openai/error.h"

#include "rbee/engine/api/text.h"
#include "server/apis/openai/response.h"

namespace rbee::server {

std::string openai_error(int status, std::string_view code, const std::exception& error) {
  if (const auto* invalid = dynamic_cast<const InvalidBody*>(&error)) {
    return openai_error_json(status, code, error.what(), invalid->errors().front().field);
  }
  if (const auto* too_long = dynamic_cast<const engine::PromptTooLong*>(&error)) {
    return openai_too_long_json(status, too_long->tokens(), too_long->context());
  }
  return openai_error_json(status, code, error.what());
}

}  // namespace rbee::server
