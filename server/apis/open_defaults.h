#pragma once
// Defaults of the APIs that do not use the engine's.

#include "server/wire/generate_request.h"

namespace rbee::server {

// Defaults of the OpenAI, Anthropic, Cohere and TGI routes: generation_config.json, else no
// truncation.
// Penalties count as in vLLM: frequency and presence the whole answer, repetition the prompt too.
void set_open_defaults(GenerateRequest& request, const engine::SamplingDefaults& model);

}  // namespace rbee::server
