#include <mach/mach.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/sysctl.h>

#include <algorithm>
#include <numeric>

#include "backends/cpu/system/system.h"

namespace rbee::cpu {
namespace {

// 0: the system has no such number.
template <typename T>
T number(const char* name) {
  T out = 0;
  size_t size = sizeof out;
  return sysctlbyname(name, &out, &size, nullptr, 0) == 0 && size == sizeof out ? out : T{0};
}

}  // namespace

// Free is what needs no swapping: untouched pages, and those that hold files or nothing of worth.
MemoryInfo machine_memory() {
  MemoryInfo memory{.total = number<int64_t>("hw.memsize")};
  vm_statistics64 pages{};
  mach_msg_type_number_t count = HOST_VM_INFO64_COUNT;
  const mach_port_t host = mach_host_self();
  if (host_statistics64(host, HOST_VM_INFO64, reinterpret_cast<host_info64_t>(&pages), &count) ==
      KERN_SUCCESS) {
    const auto free = int64_t{pages.free_count} + pages.external_page_count + pages.purgeable_count;
    memory.free = std::min(free * static_cast<int64_t>(vm_kernel_page_size), memory.total);
  }
  mach_port_deallocate(mach_task_self(), host);
  return memory;
}

// A thread on a slow core would make the others wait at the end of each region.
std::vector<int> allowed_processors() {
  const int fast = number<int>("hw.perflevel0.physicalcpu");
  const int all = number<int>("hw.physicalcpu");
  std::vector<int> out(static_cast<size_t>(std::max(fast > 0 ? fast : all, 1)));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

// Apple's cores run one thread each.
std::vector<int> core_of(int processor) {
  return {processor};
}

// macOS places threads by their quality of service: this class gets the fast cores.
void pin_to(const std::vector<int>& /*processors*/) {
  pthread_set_qos_class_self_np(QOS_CLASS_USER_INITIATED, 0);
}

std::string system_processor_name() {
  std::string out(256, '\0');
  size_t size = out.size();
  if (sysctlbyname("machdep.cpu.brand_string", out.data(), &size, nullptr, 0) != 0) return {};
  out.resize(out.find('\0'));
  return out;
}

// macOS chooses the size of pages itself.
void prefer_huge_pages(void* /*data*/, size_t /*bytes*/) {}

// MADV_DONTNEED keeps the content of memory that belongs to no file.
void give_back_pages(void* data, size_t bytes) {
  madvise(data, bytes, MADV_FREE);
}

}  // namespace rbee::cpu
