#pragma once
// The log line of a request. Internal to server/http.

#include <chrono>
#include <string>

#include "server/http/message.h"

namespace rbee::server {

// Read from an error body of any form, completed by the response's own reason; empty for other
// answers. It has no message: a message may quote what the client sent.
RefusalReason refusal_reason(const Response& response);

void log_request(const Request& request, int status, const RefusalReason& reason,
                 std::chrono::duration<double, std::milli> elapsed);

}  // namespace rbee::server
