#pragma once
// Joins the workers' metrics into one text, each line with its worker's name; and the front's own.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace rbee::server {

// texts: a worker's name and its answer at /metrics. Groups samples by family, as the format
// requires, and adds the label `worker` to each.
std::string merge_metrics(const std::vector<std::pair<std::string, std::string>>& texts);

// The front's own figures.
struct FrontCounts {
  uint64_t answered = 0;  // by a worker, with any status
  uint64_t refused = 0;   // by the front: no such model, no worker, too many waiting
  uint64_t broken = 0;    // streams whose worker ended before they did
  uint64_t left = 0;      // requests whose client left
  uint64_t matched = 0;   // of a model with several workers, sent to one that had their beginning
  uint64_t retries = 0;   // of requests whose worker ended before its answer began
  int64_t running = 0;
  int64_t waiting = 0;
};
class Replica;
// As Prometheus' text, with those of each worker.
std::string front_metrics(const FrontCounts& counts, const std::vector<const Replica*>& workers);

}  // namespace rbee::server
