#pragma once

#include "rbee/engine/sampling.h"
#include "server/contract/sampling_fields.h"

namespace rbee::server {

// What was given of the fields, and the engine's values for the rest.
engine::SamplingParams to_engine(const SamplingFields& fields);

}  // namespace rbee::server
