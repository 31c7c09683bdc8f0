#pragma once
// The GPU runtime's interface to a vendor's driver. backends/cuda implements it over the NVIDIA
// driver API, backends/rocm over the HIP runtime; all other code is shared.
//
// Every call that can fail throws Error naming the vendor's call and its status: out_of_memory for
// a lack of device or pinned memory, unsupported for a module that the driver does not take, device
// for everything else. Handles are the vendor's own.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "backends/api/device.h"

namespace rbee::gpu {

// The matrix instructions of a device. They select kernels and never change results' meaning.
enum class MatrixUnit : uint8_t {
  none,      // dot products at most (gfx1030 and its kin)
  mma,       // NVIDIA sm_80 and later: mma.sync
  wgmma,     // NVIDIA sm_90: also wgmma
  mfma,      // AMD gfx908, gfx90a, gfx942, gfx950
  wmma_w32,  // AMD gfx110x, gfx115x, gfx1200 and gfx1201
};

struct Properties {
  std::string name;          // e.g. "NVIDIA H200"
  std::string architecture;  // as images are named: "sm_90", "gfx942"
  int64_t total_memory = 0;  // bytes
  int64_t l2_bytes = 0;
  int lane_count = 32;      // threads that run in step: 32 or 64
  int multiprocessors = 0;  // compute units of AMD
  int max_threads_per_block = 1024;
  int64_t shared_per_block = 0;  // bytes, the most that a launch may ask for
  MatrixUnit matrix = MatrixUnit::none;
  bool async_copies = false;  // kernels copy to shared memory while they go on (portable.h)
  bool device_fences = true;  // blocks of a launch can show each other what they wrote
  bool integrated = false;    // inside a processor, with the host's memory
  std::string capture_fault;  // known fault of replays by this driver on this device; empty: none
};

struct Grid {
  uint32_t x = 1, y = 1, z = 1;  // blocks
};

struct KernelLaunch {
  void* kernel = nullptr;
  Grid grid;
  uint32_t threads = 0;       // per block
  uint32_t shared_bytes = 0;  // dynamic shared memory
  uint32_t params_bytes = 0;  // of the kernel's one parameter
  // Blocks may start before the previous kernel has ended. Only for kernels that wait themselves.
  bool overlap = false;
};

class Driver {
 public:
  virtual ~Driver() = default;

  virtual DeviceKind kind() const = 0;
  // e.g. "CUDA driver 13.0" or "HIP runtime 6.4"
  virtual std::string version() const = 0;
  virtual int device_count() = 0;
  // The environment variables that hide devices from the driver, as hiding_variables() lists them.
  virtual std::string hidden_by() const = 0;
  virtual Properties properties(int ordinal) = 0;

  // Makes the device current for this thread; all calls below act on the current device.
  virtual void use(int ordinal) = 0;
  // Gives back what use() took of a device on which nothing of this program is.
  virtual void release(int ordinal) noexcept = 0;
  virtual MemoryInfo memory() = 0;
  virtual void* allocate(size_t bytes) = 0;
  virtual void free(void* data) noexcept = 0;
  virtual void* allocate_host(size_t bytes) = 0;  // pinned, readable by the device
  virtual void free_host(void* data) noexcept = 0;

  virtual void copy(void* to, const void* from, size_t bytes, CopyKind kind, void* stream) = 0;
  // Between devices of this driver; staged through the host if they cannot access each other.
  virtual void copy_peer(void* to, int to_ordinal, const void* from, int from_ordinal, size_t bytes,
                         void* stream) = 0;
  virtual void fill(void* data, uint8_t value, size_t bytes, void* stream) = 0;

  virtual void* create_stream() = 0;
  virtual void destroy_stream(void* stream) noexcept = 0;
  virtual void synchronize(void* stream) = 0;
  virtual void* create_event(bool timing) = 0;
  virtual void destroy_event(void* event) noexcept = 0;
  virtual void record_event(void* event, void* stream) = 0;
  virtual void wait_event(void* event, void* stream) = 0;
  virtual void synchronize_event(void* event) = 0;
  virtual float elapsed_ms(void* start, void* end) = 0;

  virtual void* load_module(std::span<const std::byte> image) = 0;
  virtual void unload_module(void* module) noexcept = 0;
  // Null if the module has no kernel of this name.
  virtual void* find_kernel(void* module, const char* name) = 0;
  // Whether the kernel's code waits for the previous kernel before it touches that kernel's data
  // (wait_for_previous_kernel() of portable.h), so that the two may overlap.
  virtual bool waits_itself(void* kernel) = 0;
  // Lets launches of the kernel use up to `bytes` of dynamic shared memory.
  virtual void allow_shared(void* kernel, size_t bytes) = 0;
  // `params`: the address of the kernel's one parameter.
  virtual void launch(const KernelLaunch& what, void* stream, const void* params) = 0;

  // Between begin and end, work on the stream is captured; allocation stays legal.
  virtual void begin_capture(void* stream) = 0;
  virtual void* end_capture(void* stream) = 0;  // an executable graph
  virtual void launch_graph(void* graph, void* stream) = 0;
  virtual void destroy_graph(void* graph) noexcept = 0;
};

}  // namespace rbee::gpu
