#pragma once
// Cohere's POST /v2/chat.

#include "server/http/router.h"
#include "server/llm/service.h"

namespace rbee::server {

void add_cohere_routes(Router& router, LlmService& service);

}  // namespace rbee::server
