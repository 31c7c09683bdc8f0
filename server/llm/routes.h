#pragma once
// The paths of a chat worker (docs/reference/http-api.md).

#include <functional>

#include "server/http/router.h"
#include "server/llm/service.h"

namespace rbee::server {

struct LlmRouteOptions {
  bool lora_loading = false;  // clients may load adapters
};

// service: outlives the router. shutdown: called by POST /v1/shutdown; without one there is no such
// path.
Router llm_routes(LlmService& service, std::function<void()> shutdown,
                  const LlmRouteOptions& options = {});

}  // namespace rbee::server
