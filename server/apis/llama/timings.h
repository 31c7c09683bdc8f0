#pragma once
// llama-server's "timings" of an answer, its "prompt_progress", and vLLM's "metrics".

#include <nlohmann/json.hpp>

#include "server/wire/text_events.h"
#include "server/wire/worker_contract.h"

namespace rbee::server {

nlohmann::ordered_json timings_json(const EndEvent& end);
// For an unfinished answer.
nlohmann::ordered_json timings_json(const ProgressEvent& progress);
// vLLM's "metrics".
nlohmann::ordered_json metrics_json(const EndEvent& end);
// llama-server's "prompt_progress".
nlohmann::ordered_json prompt_progress_json(const ProgressEvent& progress);

}  // namespace rbee::server
