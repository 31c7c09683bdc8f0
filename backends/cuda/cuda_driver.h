#pragma once
// The NVIDIA driver, opened at run time.

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/cuda/driver_functions.h"
#include "backends/gpu/driver.h"
#include "backends/gpu/dynamic_library.h"
#include "rbee/core/dtype.h"

namespace rbee::cuda {

// A tensor in device memory for the copy engine, channels first in every list. Sizes and boxes are
// in elements, strides in bytes (for the axes after the first).
struct TensorMapTiles {
  DType dtype = DType::f16;  // or bf16, f8e4m3
  const void* data = nullptr;
  std::array<uint64_t, 4> sizes{};
  std::array<uint64_t, 3> strides{};
  std::array<uint32_t, 4> box{};
  // Under the 128-byte swizzle, which takes boxes of up to 128 bytes across, and with 256 bytes
  // fetched at once to the second-level cache; else plain, with 128.
  bool swizzled = true;
};
// Images (channels, width, height, images) under filters: columns of `pixels` positions, of
// `channels` each. Positions of tap (0, 0) run from `lower` by `stride` to `upper`, which is
// counted from the last pixel; (width, height).
struct TensorPixels {
  DType dtype = DType::f16;
  const void* data = nullptr;
  std::array<uint64_t, 4> sizes{};
  std::array<uint64_t, 3> strides{};
  std::array<int, 2> lower{}, upper{};
  uint32_t channels = 0, pixels = 0, stride = 1;
};

class CudaDriver : public gpu::Driver {
 public:
  // Opens libcuda.so.1, or the file that RBEE_CUDA_LIBRARY names. Throws device with one line
  // naming what is missing: the library, a device, or a newer driver.
  CudaDriver();

  DeviceKind kind() const override { return DeviceKind::cuda; }
  std::string version() const override;
  int device_count() override { return static_cast<int>(contexts_.size()); }
  std::string hidden_by() const override;
  gpu::Properties properties(int ordinal) override;

  void use(int ordinal) override;
  void release(int ordinal) noexcept override;
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
  bool waits_itself(void* kernel) override;
  void allow_shared(void* kernel, size_t bytes) override;
  void launch(const gpu::KernelLaunch& what, void* stream, const void* params) override;

  void begin_capture(void* stream) override;
  void* end_capture(void* stream) override;
  void launch_graph(void* graph, void* stream) override;
  void destroy_graph(void* graph) noexcept override;

  // Maps under the 128-byte swizzle, with zeros outside of the tensor (Hopper and later).
  shared::TensorMap tensor_map(const TensorMapTiles& tiles);
  shared::TensorMap tensor_map(const TensorPixels& pixels);

 private:
  void check(Status status, const char* call) const;
  int attribute(int ordinal, Attribute which);
  Handle context(int ordinal);
  int handle_of(int ordinal) const { return handles_.at(static_cast<size_t>(ordinal)); }

  uint64_t id_;  // unlike any other driver's, also one gone
  gpu::DynamicLibrary library_;
  Functions fn_;
  std::vector<int> handles_;      // CUdevice by ordinal
  std::mutex mutex_;              // guards contexts_
  std::vector<Handle> contexts_;  // primary contexts by ordinal, null until first used
};

}  // namespace rbee::cuda
