#pragma once
// What is decided of a request once its head is there: a body that nobody will read costs nothing.
// Internal to server/http.

#include <optional>
#include <string>
#include <string_view>

#include "server/http/connection_context.h"

namespace rbee::server {

struct Admission {
  const Route* route = nullptr;          // null when refused
  Headers params;                        // of the route's pattern
  std::optional<Response> refusal;       // why not, or a preflight's answer
  std::optional<size_t> max_body_bytes;  // that the route takes; none: the server's
  std::string key_name;                  // whose key it came with; empty when none is asked for
  bool last = false;  // where the request ends is unknown: no other can follow it
};

Admission admit(const Request& request, bool http_1_0, const ConnectionContext& context);

// Splits a request's target into path and query; absolute forms lose their origin.
void set_target(Request& request, std::string_view target);
// True for "Expect: 100-continue" (RFC 9110 section 10.1.1).
// One name stands for the other that the client does not give.
void name_request(Request& request);
bool expects_continue(const Request& request, bool http_1_0);

}  // namespace rbee::server
