#pragma once
// llama-server's "timings" of an answer.

#include <nlohmann/json.hpp>

#include "server/contract/responses.h"

namespace rbee::server {

nlohmann::ordered_json timings_json(const EndEvent& end);

}  // namespace rbee::server
