#pragma once
// text-generation-inference's routes for text: POST /generate, /generate_stream and /.

#include "server/http/router.h"
#include "server/llm/service.h"

namespace rbee::server {

void add_tgi_routes(Router& router, LlmService& service);

}  // namespace rbee::server
