#pragma once
// Figures of the process, under the names that all of Prometheus's clients use.

#include <string>

namespace rbee::server {

// process_cpu_seconds_total, process_resident_memory_bytes and four more, in Prometheus' text
// format 0.0.4; what the system does not tell is left out.
std::string process_metrics();

}  // namespace rbee::server
