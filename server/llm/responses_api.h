#pragma once
// OpenAI's /v1/responses, without its memory.

#include "server/http/router.h"
#include "server/llm/service.h"

namespace rbee::server {

void add_responses_route(Router& router, LlmService& service);

}  // namespace rbee::server
