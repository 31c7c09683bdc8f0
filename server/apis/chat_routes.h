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

// What a chat worker adds to the routes of all workers, without those that only refuse.
std::vector<ChatRoute> chat_route_list();

// service: outlives the router. shutdown: called by POST /v1/shutdown; without one there is no such
// path.
Router chat_routes(LlmService& service, std::function<void()> shutdown,
                   const ChatRouteOptions& options = {});

}  // namespace rbee::server
