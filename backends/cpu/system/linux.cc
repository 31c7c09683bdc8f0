#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include <fstream>

#include "backends/cpu/system/system.h"
#include "backends/cpu/topology.h"

namespace rbee::cpu {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

MemoryInfo machine_memory() {
  MemoryInfo memory;
  std::ifstream file("/proc/meminfo");
  std::string key;
  int64_t kib = 0;
  while (file >> key >> kib) {
    if (key == "MemTotal:") memory.total = kib * 1024;
    if (key == "MemAvailable:") memory.free = kib * 1024;
    std::getline(file, key);
  }
  return memory;
}

std::vector<int> allowed_processors() {
  std::vector<int> out;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return {0};
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) out.push_back(cpu);
  }
  if (out.empty()) out.push_back(0);
  return out;
}

std::vector<int> core_of(int processor) {
  std::vector<int> out{processor};
  const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(processor);
  for (const int each : parse_cpu_list(first_line(folder + "/topology/thread_siblings_list"))) {
    if (each != processor) out.push_back(each);
  }
  return out;
}

void pin_to(const std::vector<int>& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int cpu : processors) CPU_SET(static_cast<unsigned>(cpu), &set);
  pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

std::string system_processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return {};
}

void prefer_huge_pages(void* data, size_t bytes) {
  madvise(data, bytes, MADV_HUGEPAGE);
}

void give_back_pages(void* data, size_t bytes) {
  madvise(data, bytes, MADV_DONTNEED);
}

}  // namespace rbee::cpu
