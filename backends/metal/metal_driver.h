#pragma once
// Apple's GPUs by Metal 3, for macOS 13 and later on M1 and later.
//
// A device pointer is a buffer's GPU address plus an offset; the host reads the same memory through
// the buffer's contents. A stream is a command queue; its work is encoded into a command buffer
// that is committed after some launches, and at events, waits and copies through the host. A
// capture is a list that is encoded again. Sources: Apple developer documentation, "Metal".

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "backends/gpu/driver.h"
#include "backends/metal/metal_buffers.h"
#include "backends/metal/metal_stream.h"
#include "backends/metal/objc.h"
#include "backends/metal/pipeline_cache.h"

namespace rbee::metal {

class MetalDriver : public gpu::Driver {
 public:
  // Throws device with one line naming what is missing: Metal, an Apple GPU, or macOS 13.
  MetalDriver();
  ~MetalDriver() override;

  DeviceKind kind() const override { return DeviceKind::metal; }
  std::string version() const override;
  int device_count() override { return 1; }  // a Mac has one GPU of Apple's
  std::string hidden_by() const override { return ""; }
  gpu::Properties properties(int ordinal) override;

  void use(int) override {}
  void release(int) noexcept override {}
  // Total: what the device works with best, beyond which this driver gives nothing.
  MemoryInfo memory() override;
  void* allocate(size_t bytes) override;
  void free(void* data) noexcept override;  // waits for the work that may use it
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

  // image: text whose head is followed by the kernels, each behind a line "// kernel NAME ...".
  void* load_module(std::span<const std::byte> image) override;
  void unload_module(void* module) noexcept override;
  // Compiles the head and this kernel.
  void* find_kernel(void* module, const char* name) override;
  bool waits_itself(void*) override { return false; }
  void allow_shared(void* kernel, size_t bytes) override;
  void launch(const gpu::KernelLaunch& what, void* stream, const void* params) override;

  void begin_capture(void* stream) override;
  void* end_capture(void* stream) override;
  void launch_graph(void* graph, void* stream) override;
  void destroy_graph(void* graph) noexcept override;

 private:
  Retained make_buffer(size_t bytes);
  void finish_all() noexcept;

  ObjC objc_;
  Retained device_;
  uint64_t most_shared_ = 0, most_bytes_ = 0, working_set_ = 0;
  std::unique_ptr<Buffers> buffers_;
  std::unique_ptr<PipelineCache> pipelines_;
  std::mutex streams_mutex_;
  std::set<MetalStream*> streams_;
};

}  // namespace rbee::metal
