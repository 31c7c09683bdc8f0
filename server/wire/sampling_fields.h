#pragma once
// The fields of a request for text that choose its tokens.

#include "rbee/engine/api/fields.h"
#include "server/wire/generate_request.h"

namespace rbee::server {

class ObjectReader;

// By the names and ranges of the API (rbee/engine/api/fields.h); what is wrong is noted.
void read_sampling(ObjectReader& reader, GenerateRequest& request,
                   engine::SamplingApi api = engine::SamplingApi::openai);

}  // namespace rbee::server
