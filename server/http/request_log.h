#pragma once
// The log's line of a request. Internal to server/http.

#include <chrono>
#include <string>

#include "server/http/message.h"

namespace rbee::server {

struct RefusalReason {
  std::string code;   // as the client is told it; of Anthropic's form the type
  std::string field;  // the first that is wrong; empty where none is named
};

// Of an error in any of the forms that clients are answered in; empty for other answers. The
// message stays out of the log: it may quote what the client sent.
RefusalReason refusal_reason(const Response& response);

void log_request(const Request& request, int status, const RefusalReason& reason,
                 std::chrono::duration<double, std::milli> elapsed);

}  // namespace rbee::server
