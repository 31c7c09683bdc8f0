#pragma once
// The log's line of a request. Internal to server/http.

#include <chrono>
#include <string>

#include "server/http/message.h"

namespace rbee::server {

// Of an error in any of the forms that clients are answered in, completed by the response's own;
// empty for other answers. The message stays out of the log: it may quote what the client sent.
RefusalReason refusal_reason(const Response& response);

void log_request(const Request& request, int status, const RefusalReason& reason,
                 std::chrono::duration<double, std::milli> elapsed);

}  // namespace rbee::server
