#pragma once
// Where spans go: --otlp-endpoint, and OpenTelemetry's environment variables (its specification,
// "Environment Variable Specification" and "OpenTelemetry Protocol Exporter").

#include <memory>
#include <string>

#include "server/http/tracer.h"
#include "workers/common/server_flags.h"

namespace rbee::workers {

struct TraceSource {
  std::string service;   // service.name, unless OTEL_SERVICE_NAME gives one
  std::string instance;  // service.instance.id
};

// Null if there is no endpoint. Throws invalid_argument if the flag is no URL, or a client's
// certificate or key is unusable; it logs and ignores other unusable variables.
std::shared_ptr<server::Tracer> make_tracer(const ServerFlags& flags, const TraceSource& source);

// Reads a list such as "a=1,b=c%20d" (W3C Baggage, values percent-encoded). Throws
// invalid_argument.
std::vector<std::pair<std::string, std::string>> parse_pairs(std::string_view name,
                                                             std::string_view list);

}  // namespace rbee::workers
