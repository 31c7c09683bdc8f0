#pragma once
// Where spans go: --otlp-endpoint, and OpenTelemetry's variables of the environment (its
// specification, "Environment Variable Specification" and "OpenTelemetry Protocol Exporter").

#include <memory>
#include <string>

#include "server/http/tracer.h"
#include "workers/common/server_flags.h"

namespace rbee::workers {

struct TraceSource {
  std::string service;   // service.name where OTEL_SERVICE_NAME says none
  std::string instance;  // service.instance.id
};

// Null when there is nowhere to send spans to. Throws invalid_argument for a flag that is no URL,
// and for a client's certificate and key that cannot be used; other variables that cannot be used
// are logged and left out.
std::shared_ptr<server::Tracer> make_tracer(const ServerFlags& flags, const TraceSource& source);

// Of a list such as "a=1,b=c%20d" (W3C Baggage, values percent-encoded). Throws invalid_argument.
std::vector<std::pair<std::string, std::string>> parse_pairs(std::string_view name,
                                                             std::string_view list);

}  // namespace rbee::workers
