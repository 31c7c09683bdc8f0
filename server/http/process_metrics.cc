#include "server/http/process_metrics.h"

#include <sys/resource.h>

#include <sstream>

#include "rbee/core/cat.h"
#include "rbee/core/system/process.h"

namespace rbee::server {
namespace {

void write(std::string& out, std::string_view name, std::string_view type, std::string_view help,
           const std::string& value) {
  out +=
      cat("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n", name, " ", value, "\n");
}

void write_use(std::string& out, const ProcessFacts& facts) {
  if (facts.cpu_seconds) {
    write(out, "process_cpu_seconds_total", "counter", "Time on CPUs, of all threads.",
          cat(*facts.cpu_seconds));
  }
  if (facts.start_time) {
    std::ostringstream start;
    start.precision(2);
    start << std::fixed << *facts.start_time;
    write(out, "process_start_time_seconds", "gauge", "When the process started, since 1970.",
          start.str());
  }
  if (facts.virtual_bytes) {
    write(out, "process_virtual_memory_bytes", "gauge", "Address space in use.",
          cat(*facts.virtual_bytes));
  }
  if (facts.resident_bytes) {
    write(out, "process_resident_memory_bytes", "gauge", "Memory of the host in use.",
          cat(*facts.resident_bytes));
  }
}

void write_files(std::string& out, const ProcessFacts& facts) {
  if (facts.open_files) {
    write(out, "process_open_fds", "gauge", "Files and connections that are open.",
          cat(*facts.open_files));
  }
  rlimit most{};
  if (getrlimit(RLIMIT_NOFILE, &most) == 0 && most.rlim_cur != RLIM_INFINITY) {
    write(out, "process_max_fds", "gauge", "As many as may be open.", cat(most.rlim_cur));
  }
}

}  // namespace

std::string process_metrics() {
  std::string out;
  const ProcessFacts facts = process_facts();
  write_use(out, facts);
  write_files(out, facts);
  return out;
}

}  // namespace rbee::server
