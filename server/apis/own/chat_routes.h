#pragma once
// The worker's own jobs and answers for text.

#include <memory>
#include <span>

#include "rbee/engine/api/kv_events.h"
#include "server/llm/service.h"

namespace rbee::server {

std::span<const ChatRoute> own_chat_routes();
// GET /kv-events; the service must outlive the router.
void add_kv_event_route(Router& router, const LlmService& service,
                        std::shared_ptr<const engine::KvEventLog> log);

}  // namespace rbee::server
