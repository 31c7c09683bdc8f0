#include "server/apis/responses/refusals.h"

#include <utility>

#include "rbee/core/cat.h"
#include "server/apis/openai/response.h"
#include "server/apis/responses/conversation.h"

namespace rbee::server {

Response refusal(int status, std::string_view code, std::string_view param, std::string message) {
  Response out = json_response(status, openai_error_json(status, code, message, param));
  out.reason = {.code = std::string(code), .field = std::string(param), .constraint = {}};
  return out;
}

Response keeps_nothing(std::string_view param) {
  return refusal(400, "UNSUPPORTED", param,
                 "This worker keeps no responses (--response-store-mib 0)");
}

Response no_conversation(const ResponseStore& store, std::string_view param,
                         const std::string& id) {
  if (!store.on()) return keeps_nothing(param);
  return refusal(404, "NOT_FOUND", param, cat("Conversation with id '", id, "' not found."));
}

Response conversation_locked() {
  return refusal(400, "conversation_locked", "conversation",
                 "Another process is currently operating on this conversation. Please retry in a "
                 "few seconds.");
}

Response conversation_full(std::string_view param) {
  return refusal(400, "INVALID_REQUEST", param,
                 cat("A conversation takes ", kMostTurns, " additions, and no more than ",
                     "--response-store-mib: begin another one, or delete items"));
}

}  // namespace rbee::server
