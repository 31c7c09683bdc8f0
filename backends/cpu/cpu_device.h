#pragma once
// The CPU as a device: work on its streams runs at once, on the shared thread pool.

#include "backends/api/device.h"
#include "backends/cpu/caching_allocator.h"

namespace rbee::cpu {

class CpuDevice final : public Device {
 public:
  CpuDevice();

  DeviceId id() const override { return {DeviceKind::cpu, 0}; }
  std::string description() const override;
  // The machine's, or the control group's if that is less.
  MemoryInfo memory() const override;
  bool host_accessible() const override { return true; }
  const KernelTable& kernels() const override { return *kernels_; }

  void* allocate(size_t bytes, Stream&) override { return allocator_.allocate(bytes); }
  void free(void* data, size_t bytes, Stream&) noexcept override { allocator_.free(data, bytes); }
  void* allocate_host(size_t bytes) override { return allocator_.allocate(bytes); }
  void free_host(void* data, size_t bytes) noexcept override { allocator_.free(data, bytes); }
  void copy(void* to, const void* from, size_t bytes, CopyKind kind, Stream& stream) override;
  void fill_bytes(void* data, uint8_t value, size_t bytes, Stream& stream) override;

  Stream& default_stream() override { return default_stream_; }
  Stream create_stream() override { return {this, nullptr}; }
  void destroy_stream(Stream&) noexcept override {}
  void synchronize(Stream&) override {}

  // All earlier work has run when an event is recorded.
  void* create_event() override { return this; }
  void destroy_event(void*) noexcept override {}
  void record_event(void*, Stream&) override {}
  void wait_event(void*, Stream&) override {}

  bool supports_capture() const override { return false; }
  std::string capture_refusal() const override { return "a CPU runs steps as they are queued"; }
  void begin_capture(Stream& stream) override;
  void* end_capture(Stream& stream) override;
  void launch_capture(void* captured, Stream& stream) override;
  void destroy_capture(void*) noexcept override {}

  const CachingAllocator& allocator() const { return allocator_; }
  // Returns freed tensor memory to the system.
  void trim() noexcept { allocator_.trim(); }

 private:
  CachingAllocator allocator_;
  Stream default_stream_;
  const KernelTable* kernels_;
};

// All slots of this processor; see kernel_table.cc.
const KernelTable& cpu_kernels();

}  // namespace rbee::cpu
