#pragma once

#include "rbee/engine/api/sampling.h"
#include "server/wire/sampling_fields.h"

namespace rbee::server {

// What was given of the fields, and the engine's values for the rest.
engine::SamplingParams to_engine(const SamplingFields& fields);

// What OpenAI's and Anthropic's requests mean where they say nothing: what the model's makers say,
// else nothing is cut off; and the penalties count as vLLM's do, frequency and presence the whole
// answer, repetition the prompt too.
// With what the engine takes where the request says nothing.
SamplingFields with_defaults(SamplingFields fields);

void set_open_defaults(SamplingFields& fields, const engine::SamplingDefaults& model);

}  // namespace rbee::server
