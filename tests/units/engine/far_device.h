#pragma once
// The CPU with a GPU's restrictions: the host may not read its memory, and a test can make it lose
// its device or run out of memory.

#include <atomic>
#include <cstring>
#include <new>

#include "backends/cpu/cpu_device.h"
#include "rbee/core/error.h"

namespace rbee::engine {

class FarDevice : public Device {
 public:
  // From now on every call that can fail does.
  void lose() { lost_ = true; }
  // The nth allocation from now on fails, once.
  void fail_allocation(int nth) { allocations_left_ = nth; }
  // The next allocation of host memory fails, once.
  void fail_host_allocation() { host_fails_ = true; }
  // Bytes of device memory in use, without host memory.
  size_t in_use() const { return inner_.allocator().stats().in_use; }

  DeviceId id() const override { return {DeviceKind::cpu, 1}; }
  std::string description() const override { return "far"; }
  MemoryInfo memory() const override { return inner_.memory(); }
  bool host_accessible() const override { return false; }
  const KernelTable& kernels() const override { return inner_.kernels(); }

  void* allocate(size_t bytes, Stream& stream) override {
    check_alive();
    if (allocations_left_ > 0) {
      const int left = --allocations_left_;
      if (left == 0) {
        fail(Code::out_of_memory, "allocate", bytes, " bytes on far, of which 0 are free");
      }
    }
    void* data = inner_.allocate(bytes, stream);
    // A GPU's fresh memory is not zero either: this is NaN in every float type.
    std::memset(data, 0xff, bytes);
    return data;
  }
  void free(void* data, size_t bytes, Stream& stream) noexcept override {
    inner_.free(data, bytes, stream);
  }
  void* allocate_host(size_t bytes) override {
    if (host_fails_.exchange(false)) {
      fail(Code::out_of_memory, "allocate", bytes, " bytes of host memory");
    }
    return ::operator new(bytes);
  }
  void free_host(void* data, size_t) noexcept override { ::operator delete(data); }
  void copy(void* to, const void* from, size_t bytes, CopyKind kind, Stream& stream) override {
    check_alive();
    inner_.copy(to, from, bytes, kind, stream);
  }
  void fill_bytes(void* data, uint8_t value, size_t bytes, Stream& stream) override {
    inner_.fill_bytes(data, value, bytes, stream);
  }

  Stream& default_stream() override { return stream_; }
  Stream create_stream() override { return {this, nullptr}; }
  void destroy_stream(Stream&) noexcept override {}
  void synchronize(Stream&) override { check_alive(); }

  void* create_event() override { return this; }
  void destroy_event(void*) noexcept override {}
  void record_event(void*, Stream&) override {}
  void wait_event(void*, Stream&) override {}

  bool supports_capture() const override { return false; }
  void begin_capture(Stream& stream) override { inner_.begin_capture(stream); }
  void* end_capture(Stream& stream) override { return inner_.end_capture(stream); }
  void launch_capture(void* captured, Stream& stream) override {
    inner_.launch_capture(captured, stream);
  }
  void destroy_capture(void*) noexcept override {}

 private:
  void check_alive() const {
    if (lost_) fail(Code::device, "far", "lost as the test wants");
  }

  cpu::CpuDevice inner_;
  Stream stream_{this, nullptr};
  std::atomic<bool> lost_ = false;
  std::atomic<int> allocations_left_ = 0;
  std::atomic<bool> host_fails_ = false;
};

}  // namespace rbee::engine
