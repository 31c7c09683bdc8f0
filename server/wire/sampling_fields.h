#pragma once
// The sampling fields of a text request.

#include "rbee/engine/api/fields.h"
#include "server/wire/generate_request.h"

namespace rbee::server {

class ObjectReader;

// Uses the API's names and ranges (rbee/engine/api/fields.h); notes errors.
void read_sampling(ObjectReader& reader, GenerateRequest& request,
                   engine::SamplingApi api = engine::SamplingApi::openai);

}  // namespace rbee::server
