#pragma once
// Decides about a request when its head is there, so that a body that is not needed costs nothing.
// Internal to server/http.

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/connection_context.h"

namespace rbee::server {

struct Admission {
  const Route* route = nullptr;          // null if refused
  std::optional<Response> refusal;       // the error, or the answer to a preflight
  std::optional<size_t> max_body_bytes;  // for this route; none: the server's
  std::shared_ptr<BodyFile> file;        // where the body goes; null: into memory
  bool last = false;                     // the request's end is unknown, so no other can follow it
};

// Sets the request's key_name, behalf and params.
Admission admit(Request& request, bool http_1_0, const ConnectionContext& context);

// Splits a request's target into path and query; drops the origin of absolute forms.
void set_target(Request& request, std::string_view target);
// If the client gives only one of correlation_id and request_id, the other becomes the same.
void name_request(Request& request);
// True for "Expect: 100-continue" (RFC 9110 section 10.1.1).
bool expects_continue(const Request& request, bool http_1_0);

}  // namespace rbee::server
