#include "backends/cpu/cpu_device.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "backends/cpu/control_groups.h"
#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/cpu_features.h"
#include "backends/cpu/system/system.h"
#include "backends/cpu/thread_pool.h"
#include "backends/cpu/topology.h"
#include "rbee/core/error.h"

namespace rbee::cpu {
namespace {

// The activations of a picture's widest layers: pages that go back to the system must be cleared
// before they are used again.
constexpr size_t kCacheLimit = size_t{256} << 20;

[[noreturn]] void no_capture() {
  fail(Code::unsupported, "capture",
       "the CPU runs its kernels at once; there is nothing to capture");
}

int device_count() {
  return 1;
}

CpuDevice& only_device() {
  static CpuDevice cpu;
  return cpu;
}

Device& device(int ordinal) {
  if (ordinal != 0) fail(Code::not_found, "device", "cpu:", ordinal, " is not there, only cpu:0");
  return only_device();
}

DeviceOffer offer(int ordinal) {
  return {.name = processor_name(),
          .architecture = std::string(name(cpu_isa())),
          .memory = device(ordinal).memory()};
}

std::string nothing() {
  return {};
}

}  // namespace

CpuDevice::CpuDevice()
    : allocator_(kCacheLimit), default_stream_{this, nullptr}, kernels_(&cpu_kernels()) {}

std::string CpuDevice::description() const {
  const int threads = ThreadPool::shared().threads();
  return cat(processor_name(), ", ", threads, threads == 1 ? " thread, " : " threads, ",
             name(cpu_isa()));
}

MemoryInfo CpuDevice::memory() const {
  MemoryInfo memory = machine_memory();
  if (const auto group = ControlGroups().memory(); group && group->limit < memory.total) {
    memory.total = group->limit;
    memory.free = std::min(memory.free, group->free);
  }
  return memory;
}

void CpuDevice::copy(void* to, const void* from, size_t bytes, CopyKind, Stream&) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

void CpuDevice::fill_bytes(void* data, uint8_t value, size_t bytes, Stream&) {
  if (bytes > 0) std::memset(data, value, bytes);
}

void CpuDevice::begin_capture(Stream&) {
  no_capture();
}

void* CpuDevice::end_capture(Stream&) {
  no_capture();
}

void CpuDevice::launch_capture(void*, Stream&) {
  no_capture();
}

void trim_memory() {
  only_device().trim();
}

const BackendInfo& cpu_backend() {
  static const BackendInfo backend{.kind = DeviceKind::cpu,
                                   .device_count = &device_count,
                                   .offer = &offer,
                                   .device = &device,
                                   .unavailable_reason = &nothing,
                                   .driver_version = &nothing};
  return backend;
}

}  // namespace rbee::cpu
