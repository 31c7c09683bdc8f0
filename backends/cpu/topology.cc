#include "backends/cpu/topology.h"

#include <set>
#include <sstream>

#include "backends/cpu/system/system.h"

namespace rbee::cpu {
namespace {

constexpr int kMostProcessors = 1024;

}  // namespace

std::vector<int> parse_cpu_list(const std::string& text) {
  std::vector<int> out;
  std::istringstream in(text);
  int first = 0;
  while (in >> first && first >= 0 && first < kMostProcessors) {
    int last = first;
    if (in.peek() == '-') {
      in.get();
      if (!(in >> last) || last < first || last >= kMostProcessors) break;
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
    std::vector<int> core = core_of(cpu);
    std::erase_if(core, [&](int each) { return usable.count(each) == 0; });
    seen.insert(core.begin(), core.end());
    cores.push_back(std::move(core));
  }
  return cores;
}

std::string processor_name() {
  if (std::string name = system_processor_name(); !name.empty()) return name;
#if defined(__x86_64__)
  return "x86-64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "cpu";
#endif
}

}  // namespace rbee::cpu
