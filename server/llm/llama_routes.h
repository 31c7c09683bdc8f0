#pragma once
// llama-server's own routes: /completion, /infill, /props and /slots.

#include "server/http/router.h"
#include "server/llm/service.h"

namespace rbee::server {

void add_llama_routes(Router& router, LlmService& service);

}  // namespace rbee::server
