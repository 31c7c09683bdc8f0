#pragma once
// Defaults of APIs that do not take the engine's.

#include "server/wire/generate_request.h"

namespace rbee::server {

// The defaults of OpenAI's and Anthropic's routes: generation_config.json's values, else no
// truncation. Penalties count as vLLM's do: frequency and presence the whole answer, repetition the
// prompt too.
void set_open_defaults(GenerateRequest& request, const engine::SamplingDefaults& model);

}  // namespace rbee::server
