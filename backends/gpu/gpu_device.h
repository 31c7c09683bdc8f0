#pragma once
// A GPU as a Device: one class for every vendor, over a Driver and the embedded kernels.

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "backends/gpu/capture_trust.h"
#include "backends/gpu/device_allocator.h"
#include "backends/gpu/driver.h"
#include "backends/gpu/kernel_cache.h"
#include "backends/gpu/launch.h"
#include "backends/gpu/stream_records.h"

namespace rbee::gpu {

// What a vendor's backend supplies for its devices.
struct Vendor {
  Driver* driver = nullptr;             // must outlive the devices
  std::span<const KernelImage> images;  // outlive the devices
  // The slots for a device, best implementation first; the table lives until the program ends.
  const KernelTable& (*kernels)(const Properties&) = nullptr;
};

// Errors name the call of Device, this device, the last operation on the stream if there is one,
// and the driver's message.
class GpuDevice final : public Device {
 public:
  // Throws what the driver throws.
  GpuDevice(const Vendor& vendor, int ordinal);
  ~GpuDevice() override;

  DeviceId id() const override { return {driver_.kind(), ordinal_}; }
  std::string description() const override;
  MemoryInfo memory() const override;
  bool host_accessible() const override { return false; }
  const KernelTable& kernels() const override { return *kernel_table_; }

  void* allocate(size_t bytes, Stream& stream) override;
  void free(void* data, size_t bytes, Stream& stream) noexcept override;
  void* allocate_host(size_t bytes) override;
  void free_host(void* data, size_t bytes) noexcept override;
  // Stages pageable host memory: the call returns when `from` may be changed. The device itself
  // reads and writes memory of allocate_host, in stream order.
  void copy(void* to, const void* from, size_t bytes, CopyKind kind, Stream& stream) override;
  // Between devices of one vendor.
  bool copy_peer(const PeerCopy& copy) override;
  void fill_bytes(void* data, uint8_t value, size_t bytes, Stream& stream) override;

  Stream& default_stream() override { return default_stream_; }
  Stream create_stream() override;
  // Waits for the stream's work, and moves its cached memory to the default stream.
  void destroy_stream(Stream& stream) noexcept override;
  void synchronize(Stream& stream) override;

  void* create_event() override;
  void destroy_event(void* event) noexcept override;
  void record_event(void* event, Stream& stream) override;
  void wait_event(void* event, Stream& stream) override;

  bool supports_capture() const override { return capture_trust_.why_not().empty(); }
  std::string capture_refusal() const override { return capture_trust_.why_not(); }
  void begin_capture(Stream& stream) override;
  void* end_capture(Stream& stream) override;
  void launch_capture(void* captured, Stream& stream) override;
  void destroy_capture(void* captured) noexcept override;
  // Whether any stream is between begin_capture() and end_capture().
  bool capturing() const { return capturing_; }
  // Call this before a kernel is queued or captured; a crash report needs it (launch_trail.h). `op`
  // and `kernel` must outlive the device.
  void note_kernel(const char* op, const char* kernel, const Stream& stream);

  // For the kernels of this folder.
  const Properties& properties() const { return properties_; }
  Driver& driver() const { return driver_; }
  KernelCache& kernel_cache() { return kernel_cache_; }
  StreamRecords& streams() { return streams_; }
  AllocatorStats allocator_stats() const { return allocator_.stats(); }
  void reset_allocator_peak() { allocator_.reset_peak(); }
  // Makes the device current for the calling thread.
  void use() const { driver_.use(ordinal_); }

 private:
  template <typename Call>
  auto named(const char* what, const Call& call, void* stream = nullptr) const;
  void use_to_give_back() const noexcept;

  Driver& driver_;
  int ordinal_;
  Properties properties_;
  const KernelTable* kernel_table_;
  KernelCache kernel_cache_;
  DeviceAllocator allocator_;
  mutable StreamRecords streams_;
  Stream default_stream_;
  mutable CaptureTrust capture_trust_{*this};
  std::atomic<bool> capturing_ = false;
  std::mutex captured_mutex_;
  std::string captured_kernels_;  // "OP KERNEL, ..." of what is being captured, each once
};

// The GPU that a stream belongs to; only for streams of GpuDevice.
inline GpuDevice& device_of(const Stream& stream) {
  return static_cast<GpuDevice&>(*stream.device);
}

// Temporary memory of the stream's device for a kernel; the destructor frees it in stream order.
// Null for 0 bytes.
class Scratch {
 public:
  Scratch(Stream& stream, size_t bytes)
      : stream_(stream),
        bytes_(bytes),
        data_(bytes > 0 ? stream.device->allocate(bytes, stream) : nullptr) {}
  ~Scratch() { stream_.device->free(data_, bytes_, stream_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  Stream& stream_;
  size_t bytes_;
  void* data_;
};

}  // namespace rbee::gpu
