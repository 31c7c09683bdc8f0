#include "server/http/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <vector>

#include "rbee/core/cat.h"

namespace rbee::server {
namespace {

// Fields of /proc/self/stat (proc(5)) from the third on, because the name before may have blanks.
std::vector<std::string> stat_fields() {
  std::ifstream file("/proc/self/stat");
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  const size_t end = all.rfind(')');
  if (end == std::string::npos) return {};
  std::istringstream rest(all.substr(end + 1));
  return {std::istream_iterator<std::string>(rest), {}};
}

// Seconds since 1970 at which the machine started.
std::optional<double> boot_time() {
  std::ifstream file("/proc/stat");
  for (std::string word; file >> word;) {
    double seconds = 0;
    if (word == "btime" && file >> seconds) return seconds;
  }
  return std::nullopt;
}

void write(std::string& out, std::string_view name, std::string_view type, std::string_view help,
           const std::string& value) {
  out +=
      cat("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n", name, " ", value, "\n");
}

void write_stat(std::string& out) {
  const std::vector<std::string> fields = stat_fields();
  if (fields.size() < 22) return;
  const auto field = [&](size_t number) { return std::stod(fields[number - 3]); };
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  write(out, "process_cpu_seconds_total", "counter", "Time on CPUs, of all threads.",
        cat((field(14) + field(15)) / ticks));
  if (const std::optional<double> boot = boot_time()) {
    std::ostringstream start;
    start.precision(2);
    start << std::fixed << *boot + field(22) / ticks;
    write(out, "process_start_time_seconds", "gauge", "When the process started, since 1970.",
          start.str());
  }
  write(out, "process_virtual_memory_bytes", "gauge", "Address space in use.", fields[23 - 3]);
  const long page = sysconf(_SC_PAGESIZE);
  write(out, "process_resident_memory_bytes", "gauge", "Memory of the host in use.",
        cat(std::stoll(fields[24 - 3]) * page));
}

void write_files(std::string& out) {
  std::error_code error;
  // One of them is this open folder.
  const auto open = std::distance(std::filesystem::directory_iterator("/proc/self/fd", error), {});
  if (!error) {
    write(out, "process_open_fds", "gauge", "Files and connections that are open.", cat(open - 1));
  }
  rlimit most{};
  if (getrlimit(RLIMIT_NOFILE, &most) == 0 && most.rlim_cur != RLIM_INFINITY) {
    write(out, "process_max_fds", "gauge", "As many as may be open.", cat(most.rlim_cur));
  }
}

}  // namespace

std::string process_metrics() {
  std::string out;
  write_stat(out);
  write_files(out);
  return out;
}

}  // namespace rbee::server
