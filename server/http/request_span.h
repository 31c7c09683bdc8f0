#pragma once
// The span of a request at the server (OpenTelemetry's semantic conventions 1.37, "HTTP server
// span"). Internal to server/http.

#include "server/http/router.h"

namespace rbee::server {

// Begins the request's span; it has no tracer if the sampler leaves it out. Does nothing for GET,
// HEAD or OPTIONS without a traceparent.
void begin_request_span(Request& request, const std::shared_ptr<Tracer>& tracer);

struct RequestEnd {
  const Route* route = nullptr;  // null: none was found
  int status = 0;
  std::chrono::steady_clock::time_point begin;
  bool tls = false;
};
// Call it once for each request, after its answer's last byte.
void record_request_span(Request& request, const RequestEnd& end);

}  // namespace rbee::server
