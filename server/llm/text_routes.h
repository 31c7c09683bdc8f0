#pragma once
// /tokenize, /detokenize and /apply-template: what the model makes of text.

#include "server/http/router.h"
#include "server/llm/service.h"

namespace rbee::server {

void add_text_routes(Router& router, LlmService& service);

}  // namespace rbee::server
