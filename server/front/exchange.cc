#include "server/front/exchange.h"

#include <algorithm>
#include <array>

#include "rbee/core/cat.h"

namespace rbee::server {
namespace {

// Headers of the client's connection, its key, and headers that the front makes anew.
bool is_own(std::string_view name) {
  static constexpr std::array<std::string_view, 17> kOwn = {"authorization",
                                                            "x-api-key",
                                                            "host",
                                                            "connection",
                                                            "content-length",
                                                            "transfer-encoding",
                                                            "expect",
                                                            "te",
                                                            "upgrade",
                                                            "keep-alive",
                                                            "x-correlation-id",
                                                            "x-request-id",
                                                            "x-rbee-sender",
                                                            "origin",
                                                            "cookie",
                                                            "proxy-authorization",
                                                            "trailer"};
  return std::find(kOwn.begin(), kOwn.end(), name) != kOwn.end();
}

}  // namespace

std::string_view upstream_method(const Exchange& exchange) {
  const std::string_view method = exchange.request.method;
  return method == "HEAD" && exchange.wanted.job.empty() ? "GET" : method;
}

std::string upstream_head(const Exchange& exchange, const Replica& replica) {
  const Request& request = exchange.request;
  std::string text = cat(
      upstream_method(exchange), " ", request.path, request.query.empty() ? "" : "?", request.query,
      " HTTP/1.1\r\nHost: 127.0.0.1:", replica.port(),
      "\r\nConnection: close\r\nAuthorization: Bearer ", replica.token(),
      "\r\nX-Correlation-ID: ", request.correlation_id, "\r\nX-Request-ID: ", request.request_id,
      "\r\nX-Rbee-Sender: ", request.sender(), "\r\n");
  // The front's span is the parent of the worker's. Without one, the worker records none either.
  const bool traced = !request.trace.self.trace_id.empty();
  if (traced) text += cat("traceparent: ", traceparent(request.trace.self), "\r\n");
  for (const auto& [name, value] : request.headers) {
    if (traced && name == "traceparent") continue;
    if (!is_own(name)) text += cat(name, ": ", value, "\r\n");
  }
  if (!request.body.empty() || request.method == "POST") {
    text += cat("Content-Length: ", request.body.size(), "\r\n");
  }
  return text + "\r\n";
}

Response response_of(const UpstreamHead& head) {
  Response response;
  response.status = head.status;
  response.content_type = head.content_type;
  const bool streams = stream_form(head.content_type).has_value();
  for (const auto& [name, value] : head.headers) {
    const bool anew = streams && (name == "cache-control" || name == "x-accel-buffering");
    if (!anew) response.headers.emplace_back(name, value);
  }
  return response;
}

}  // namespace rbee::server
