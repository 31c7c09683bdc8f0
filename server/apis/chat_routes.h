#pragma once
// The paths of a chat worker (docs/reference/http-api.md).

#include <functional>
#include <vector>

#include "server/http/router.h"
#include "server/llm/service.h"

namespace rbee::server {

struct ChatRouteOptions {
  bool lora_loading = false;  // clients may load adapters
};

// A chat worker's own routes, without those that only refuse.
std::vector<ChatRoute> chat_route_list();

// The service must outlive the router. shutdown: called by POST /v1/shutdown; empty: no such path.
Router chat_routes(LlmService& service, std::function<void()> shutdown,
                   const ChatRouteOptions& options = {});

}  // namespace rbee::server
