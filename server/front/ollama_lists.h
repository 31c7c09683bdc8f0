#pragma once
// What the front's answers in Ollama's form list.

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "server/front/pool.h"

namespace rbee::server {

// The list of models that one worker of each model gives, by the model's index.
std::map<size_t, nlohmann::json> lists_of(const Pool& pool,
                                          const std::vector<Pool::WorkerReply>& replies);

// A model on demand that was never loaded, as entries of /api/tags: one for each of its names.
// modified: seconds since 1970.
nlohmann::json tags_of(const ServedModel& model, int64_t modified);

// A worker's answer of /api/show, with the time of the model's newest file. modified: seconds since
// 1970.
std::string shown_with_time(const std::string& answer, int64_t modified);

// Seconds since 1970 as RFC 3339 writes them.
std::string time_text(int64_t seconds);

}  // namespace rbee::server
