#pragma once

#include "server/http/router.h"
#include "server/llm/service.h"

namespace rbee::server {

// GET and POST /lora-adapters, and, where adapters may be loaded while the worker runs,
// /v1/load_lora_adapter and /v1/unload_lora_adapter.
void add_lora_routes(Router& router, LlmService& service, bool may_load);

}  // namespace rbee::server
