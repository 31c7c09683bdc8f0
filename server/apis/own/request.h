#pragma once
// Bodies of the worker's own routes for text.

#include <string_view>

#include "server/wire/generate_request.h"

namespace rbee::server {

// A body of POST /v1/jobs, /v1/inference or /v1/infer: {"operation":"infer", ...}, or the same
// fields without `operation`. Ignores unknown fields. Throws InvalidBody.
GenerateRequest parse_generate(std::string_view body);

}  // namespace rbee::server
