#pragma once
// The command line of a model's worker, and where it publishes what its cache holds.

#include <optional>
#include <string>
#include <vector>

#include "server/front/config.h"

namespace rbee::server {

// Of replica number `index`, without what every worker gets. A replica takes its own devices, and
// publishes at endpoints of its own, see kv_publisher().
std::vector<std::string> worker_command(const ServedModel& model, int index);

// As --kv-events-config names it.
struct PublisherPlace {
  std::string endpoint;
  std::string replay_endpoint;  // empty: none
  std::string topic;
};

// Of replica number `index`: endpoints that are bound have as many ports more than the model's
// flags say (vLLM's rule for data-parallel ranks), or a name of ipc:// with "_dp" and the number.
// Nothing: it publishes none, or the worker will say what is wrong with its flag. Throws
// invalid_argument if a port is above 65535.
std::optional<PublisherPlace> kv_publisher(const ServedModel& model, int index);

// Throws invalid_argument if two replicas would bind one endpoint, naming both and it, and as
// kv_publisher().
void check_kv_publishers(const std::vector<ServedModel>& models);

}  // namespace rbee::server
