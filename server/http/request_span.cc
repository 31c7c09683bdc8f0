#include "server/http/request_span.h"

#include "rbee/core/cat.h"
#include "server/http/tracer.h"

namespace rbee::server {

void begin_request_span(Request& request, const std::shared_ptr<Tracer>& tracer) {
  if (!tracer) return;
  const std::optional<TraceParent> parent = parse_traceparent(request.header("traceparent"));
  const bool question =
      request.method == "GET" || request.method == "HEAD" || request.method == "OPTIONS";
  if (!parent && question) return;
  request.trace = begin_span(tracer, parent);
  TraceParent& self = request.trace.self;
  self.sampled = tracer->samples(self.trace_id, parent);
  if (!self.sampled) request.trace.tracer = nullptr;
}

void record_request_span(Request& request, const RequestEnd& end) {
  const ActiveSpan trace = std::exchange(request.trace, {});
  if (!trace.tracer) return;
  // Most of the front's requests match "*", which is no useful name.
  const bool named = end.route != nullptr && end.route->pattern != "*";
  Span span =
      make_span(trace, named ? cat(request.method, " ", end.route->pattern) : request.method,
                end.begin, std::chrono::steady_clock::now());
  span.kind = SpanKind::server;
  span.attributes = {{"http.request.method", printable(request.method)},
                     {"url.path", printable(request.path)},
                     {"url.scheme", end.tls ? "https" : "http"},
                     {"http.response.status_code", int64_t{end.status}},
                     {"client.address", request.remote},
                     {"rbee.correlation_id", request.correlation_id}};
  if (named) span.attributes.emplace_back("http.route", end.route->pattern);
  if (!request.key_name.empty()) span.attributes.emplace_back("enduser.id", request.key_name);
  span.failed = end.status >= 500;
  if (span.failed) span.attributes.emplace_back("error.type", cat(end.status));
  trace.tracer->record(std::move(span));
}

}  // namespace rbee::server
