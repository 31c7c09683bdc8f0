#pragma once
// llama-server's "timings" of an answer, and its "prompt_progress".

#include <nlohmann/json.hpp>

#include "server/contract/responses.h"

namespace rbee::server {

nlohmann::ordered_json timings_json(const EndEvent& end);
// Of an answer that is not over.
nlohmann::ordered_json timings_json(const ProgressEvent& progress);
// llama-server's "prompt_progress".
nlohmann::ordered_json prompt_progress_json(const ProgressEvent& progress);

}  // namespace rbee::server
