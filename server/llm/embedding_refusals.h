#pragma once
// What a chat worker answers where models for embeddings and ranking do.

#include "server/http/router.h"
#include "server/llm/service.h"

namespace rbee::server {

// service: outlives the router.
void add_embedding_refusals(Router& router, const LlmService& service);

}  // namespace rbee::server
