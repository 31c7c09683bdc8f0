#pragma once
// AMD's HIP runtime, opened at run time.

#include <string>

#include "backends/gpu/driver.h"
#include "backends/gpu/dynamic_library.h"
#include "backends/rocm/hip_functions.h"

namespace rbee::rocm {

// Why the runtime finds no GPU, in words for brackets; `kfd`: the kernel driver's device file.
std::string why_no_gpu(const char* kfd);

class HipDriver : public gpu::Driver {
 public:
  // Opens libamdhip64.so of ROCm 5.2.3 or later, or the file that RBEE_HIP_LIBRARY names. Throws
  // device with one line naming what is missing: the library, a device, or a newer library.
  HipDriver();

  DeviceKind kind() const override { return DeviceKind::rocm; }
  std::string version() const override;
  int device_count() override { return device_count_; }
  std::string hidden_by() const override;
  gpu::Properties properties(int ordinal) override;

  void use(int ordinal) override;
  void release(int) noexcept override {}  // HIP makes queues when they are first used
  MemoryInfo memory() override;
  void* allocate(size_t bytes) override;
  void free(void* data) noexcept override;
  void* allocate_host(size_t bytes) override;
  void free_host(void* data) noexcept override;
  void copy(void* to, const void* from, size_t bytes, CopyKind kind, void* stream) override;
  void copy_peer(void* to, int to_ordinal, const void* from, int from_ordinal, size_t bytes,
                 void* stream) override;
  void fill(void* data, uint8_t value, size_t bytes, void* stream) override;

  void* create_stream() override;
  void destroy_stream(void* stream) noexcept override;
  void synchronize(void* stream) override;
  void* create_event(bool timing) override;
  void destroy_event(void* event) noexcept override;
  void record_event(void* event, void* stream) override;
  void wait_event(void* event, void* stream) override;
  void synchronize_event(void* event) override;
  float elapsed_ms(void* start, void* end) override;

  void* load_module(std::span<const std::byte> image) override;
  void unload_module(void* module) noexcept override;
  void* find_kernel(void* module, const char* name) override;
  bool waits_itself(void*) override { return false; }  // AMD's kernels do not overlap
  void allow_shared(void* kernel, size_t bytes) override;
  void launch(const gpu::KernelLaunch& what, void* stream, const void* params) override;

  void begin_capture(void* stream) override;
  void* end_capture(void* stream) override;
  void launch_graph(void* graph, void* stream) override;
  void destroy_graph(void* graph) noexcept override;

 private:
  void check(Status status, const char* call) const;
  int attribute(int ordinal, Attribute which);
  std::string architecture(int ordinal);

  uint64_t id_;  // unlike any other driver's, also one gone
  gpu::DynamicLibrary library_;
  Functions fn_;
  FillProperties* fill_properties_ = nullptr;
  PropertiesLayout layout_{};
  int device_count_ = 0;
  int version_ = 0;  // as hip_version()
};

}  // namespace rbee::rocm
