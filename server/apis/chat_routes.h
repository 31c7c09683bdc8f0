#pragma once
// The paths of a chat worker (docs/reference/http-api.md).

#include <functional>
#include <memory>
#include <vector>

#include "rbee/engine/api/kv_events.h"
#include "server/http/router.h"
#include "server/llm/service.h"

namespace rbee::server {

struct ChatRouteOptions {
  bool lora_loading = false;  // clients may load adapters
  // Events for GET /kv-events; null: no such path.
  std::shared_ptr<const engine::KvEventLog> kv_events = nullptr;
};

// A chat worker's own routes, without those that only refuse.
std::vector<ChatRoute> chat_route_list();

// The service must outlive the router. shutdown: called by POST /v1/shutdown; empty: no such path.
Router chat_routes(LlmService& service, std::function<void()> shutdown,
                   const ChatRouteOptions& options = {});

}  // namespace rbee::server
