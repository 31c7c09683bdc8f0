#pragma once
// Anthropic's Messages API: /v1/messages and /v1/messages/count_tokens.

#include "server/http/router.h"
#include "server/llm/service.h"

namespace rbee::server {

void add_anthropic_routes(Router& router, LlmService& service);

}  // namespace rbee::server
