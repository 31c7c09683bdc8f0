#pragma once
// The workers' metrics as one text, each line with its worker's name, beside the front's own.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace rbee::server {

// texts: a worker's name and what it says at /metrics. Families stand together, as the format
// wants; each sample gets the label `worker`.
std::string merge_metrics(const std::vector<std::pair<std::string, std::string>>& texts);

// The front's own figures.
struct FrontCounts {
  uint64_t answered = 0;  // by a worker, whatever the status
  uint64_t refused = 0;   // by the front: no such model, no worker, too many wait
  uint64_t broken = 0;    // streams whose worker ended in the middle
  uint64_t left = 0;      // by their clients
  uint64_t retries = 0;   // of requests whose worker ended before its answer began
  int64_t running = 0;
  int64_t waiting = 0;
};

}  // namespace rbee::server
