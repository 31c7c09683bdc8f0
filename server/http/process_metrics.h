#pragma once
// Metrics of the process, under the names that all Prometheus clients use.

#include <string>

namespace rbee::server {

// process_cpu_seconds_total, process_resident_memory_bytes and four more, in Prometheus' text
// format 0.0.4; leaves out what the system does not report.
std::string process_metrics();

}  // namespace rbee::server
