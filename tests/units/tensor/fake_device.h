#pragma once
// A device in host memory that counts its calls. `accessible`: whether the library may access its
// memory directly; a GPU's it may not.

#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "backends/api/kernel_table.h"
#include "rbee/core/error.h"

namespace rbee::test {

class FakeDevice final : public Device {
 public:
  explicit FakeDevice(DeviceId id, bool accessible) : id_(id), accessible_(accessible) {}

  int allocations = 0;       // alive now
  int host_allocations = 0;  // alive now
  size_t bytes = 0;          // bytes in them
  size_t limit = SIZE_MAX;   // largest single allocation
  std::vector<CopyKind> copies;
  std::vector<const Stream*> allocated_on;  // the stream of each allocation

  DeviceId id() const override { return id_; }
  std::string description() const override { return "fake"; }
  MemoryInfo memory() const override { return {}; }
  bool host_accessible() const override { return accessible_; }
  const KernelTable& kernels() const override { return kernels_; }

  void* allocate(size_t size, Stream& stream) override {
    if (size > limit) fail(Code::out_of_memory, "allocate", size, " bytes on ", id_);
    ++allocations;
    bytes += size;
    allocated_on.push_back(&stream);
    return ::operator new(size, std::align_val_t{64});
  }
  void free(void* data, size_t size, Stream&) noexcept override {
    if (data == nullptr) return;
    --allocations;
    bytes -= size;
    ::operator delete(data, std::align_val_t{64});
  }
  void* allocate_host(size_t size) override {
    ++host_allocations;
    return ::operator new(size);
  }
  void free_host(void* data, size_t) noexcept override {
    --host_allocations;
    ::operator delete(data);
  }
  void copy(void* to, const void* from, size_t size, CopyKind kind, Stream&) override {
    copies.push_back(kind);
    std::memcpy(to, from, size);
  }
  void fill_bytes(void* data, uint8_t value, size_t size, Stream&) override {
    std::memset(data, value, size);
  }

  Stream& default_stream() override { return default_stream_; }
  Stream create_stream() override { return {this, nullptr}; }
  void destroy_stream(Stream&) noexcept override {}
  void synchronize(Stream&) override {}
  void* create_event() override { return nullptr; }
  void destroy_event(void*) noexcept override {}
  void record_event(void*, Stream&) override {}
  void wait_event(void*, Stream&) override {}
  bool supports_capture() const override { return false; }
  void begin_capture(Stream&) override {}
  void* end_capture(Stream&) override { return nullptr; }
  void launch_capture(void*, Stream&) override {}
  void destroy_capture(void*) noexcept override {}

 private:
  DeviceId id_;
  bool accessible_;
  KernelTable kernels_;
  Stream default_stream_{this, nullptr};
};

}  // namespace rbee::test
