#include "backends/cpu/topology.h"

#include <sched.h>

#include <fstream>
#include <set>
#include <sstream>

namespace rbee::cpu {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::vector<int> allowed_processors() {
  std::vector<int> out;
#ifdef __linux__
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return {0};
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) out.push_back(cpu);
  }
#endif
  if (out.empty()) out.push_back(0);
  return out;
}

}  // namespace

std::vector<int> parse_cpu_list(const std::string& text) {
  std::vector<int> out;
  std::istringstream in(text);
  int first = 0;
  while (in >> first && first >= 0 && first < CPU_SETSIZE) {
    int last = first;
    if (in.peek() == '-') {
      in.get();
      if (!(in >> last) || last < first || last >= CPU_SETSIZE) break;
    }
    for (int cpu = first; cpu <= last; ++cpu) out.push_back(cpu);
    if (in.peek() != ',') break;
    in.get();
  }
  return out;
}

std::vector<std::vector<int>> physical_cores() {
  const std::vector<int> allowed = allowed_processors();
  const std::set<int> usable(allowed.begin(), allowed.end());
  std::vector<std::vector<int>> cores;
  std::set<int> seen;
  for (int cpu : allowed) {
    if (seen.count(cpu) != 0) continue;
    const std::string path = "/sys/devices/system/cpu/cpu" + std::to_string(cpu);
    std::vector<int> core{cpu};
    for (int sibling : parse_cpu_list(first_line(path + "/topology/thread_siblings_list"))) {
      if (sibling != cpu && usable.count(sibling) != 0) core.push_back(sibling);
    }
    seen.insert(core.begin(), core.end());
    cores.push_back(std::move(core));
  }
  return cores;
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
#if defined(__x86_64__)
  return "x86-64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "cpu";
#endif
}

}  // namespace rbee::cpu
