#pragma once
// Device: memory, streams, events, copies and graph capture of one piece of hardware. The kernel
// table has all operations. Calls throw Error(device | out_of_memory | unsupported).

#include <cstddef>
#include <cstdint>
#include <string>

#include "rbee/core/device_id.h"

namespace rbee {

class Device;
struct KernelTable;

// A queue of work on a device; work on one stream runs in order. The CPU's streams run work
// immediately.
struct Stream {
  Device* device = nullptr;
  void* handle = nullptr;
};

struct MemoryInfo {
  int64_t total = 0;  // bytes
  int64_t free = 0;   // bytes
};

enum class CopyKind : uint8_t { host_to_device, device_to_host, device_to_device };

// A copy between two devices.
struct PeerCopy {
  void* to;
  Stream& to_stream;
  const void* from;
  Stream& from_stream;
  size_t bytes;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual DeviceId id() const = 0;
  virtual std::string description() const = 0;  // e.g. "AMD EPYC 7B13, 2 threads, avx2"
  virtual MemoryInfo memory() const = 0;
  // True if the host may read and write allocations directly.
  virtual bool host_accessible() const = 0;
  virtual const KernelTable& kernels() const = 0;

  // Ordered with the stream; at least 64-byte aligned. free of null does nothing.
  virtual void* allocate(size_t bytes, Stream& stream) = 0;
  virtual void free(void* data, size_t bytes, Stream& stream) noexcept = 0;
  // Host memory with the fastest copies to and from the device.
  virtual void* allocate_host(size_t bytes) = 0;
  virtual void free_host(void* data, size_t bytes) noexcept = 0;
  virtual void copy(void* to, const void* from, size_t bytes, CopyKind kind, Stream& stream) = 0;
  // Copies from another device to this one without going through pageable memory. Starts after all
  // earlier work of both streams; later work of both waits for it. False, with nothing queued, if
  // that is impossible.
  virtual bool copy_peer(const PeerCopy&) { return false; }
  virtual void fill_bytes(void* data, uint8_t value, size_t bytes, Stream& stream) = 0;

  virtual Stream& default_stream() = 0;
  virtual Stream create_stream() = 0;
  virtual void destroy_stream(Stream& stream) noexcept = 0;
  virtual void synchronize(Stream& stream) = 0;

  virtual void* create_event() = 0;
  virtual void destroy_event(void* event) noexcept = 0;
  virtual void record_event(void* event, Stream& stream) = 0;
  virtual void wait_event(void* event, Stream& stream) = 0;

  // Launches are captured instead of run; the result is replayed as a whole. GPUs only.
  virtual bool supports_capture() const = 0;
  // Why the device does not support capture, in one line; empty if it does.
  virtual std::string capture_refusal() const {
    return supports_capture() ? "" : "the device has no captures";
  }
  virtual void begin_capture(Stream& stream) = 0;
  virtual void* end_capture(Stream& stream) = 0;
  virtual void launch_capture(void* captured, Stream& stream) = 0;
  virtual void destroy_capture(void* captured) noexcept = 0;
};

}  // namespace rbee
