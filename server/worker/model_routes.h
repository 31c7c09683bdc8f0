#pragma once
// What is served, as OpenAI lists it: GET /v1/models and GET /v1/models/{id}; with the header
// "anthropic-version" as Anthropic does.

#include <functional>
#include <vector>

#include "server/contract/openai_responses.h"
#include "server/http/router.h"

namespace rbee::server {

// models: those that are served at the time of a request, at least one.
void add_model_routes(Router& router, std::function<std::vector<OpenAiModel>()> models);

}  // namespace rbee::server
