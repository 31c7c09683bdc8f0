#include "backends/gpu/gpu_device.h"

#include <utility>

#include "rbee/core/error.h"
#include "rbee/core/experimental.h"
#include "rbee/core/launch_trail.h"

namespace rbee::gpu {
namespace {

// Work that is queued on `later` from now on begins after the work on `earlier` has ended.
void run_after(Stream& later, Stream& earlier) {
  Device& device = *earlier.device;
  void* event = device.create_event();
  try {
    device.record_event(event, earlier);
    later.device->wait_event(event, later);
  } catch (...) {
    device.destroy_event(event);
    throw;
  }
  device.destroy_event(event);
}

constexpr size_t kMostNames = 1500;  // bytes

// What begin_capture and end_capture return: the graph and the memory that it works in.
struct Captured {
  void* graph;
  uint64_t pool;
  std::string kernels;  // as GpuDevice::captured_kernels_
};

}  // namespace

GpuDevice::GpuDevice(const Vendor& vendor, int ordinal)
    : driver_(*vendor.driver),
      ordinal_(ordinal),
      properties_((driver_.use(ordinal), driver_.properties(ordinal))),
      kernel_table_(&vendor.kernels(properties_)),
      kernel_cache_(driver_, cat(DeviceId{driver_.kind(), ordinal}), properties_.architecture,
                    vendor.images),
      allocator_(driver_, ordinal),
      streams_(driver_),
      default_stream_(create_stream()) {}

// Calls the driver with the device current.
template <typename Call>
auto GpuDevice::named(const char* what, const Call& call, void* stream) const {
  try {
    use();
    return call();
  } catch (const Error& error) {
    fail(error.code(), what, "on ", id(), stream != nullptr ? streams_.after(stream) : "", ": ",
         error.what());
  }
}

// One thread may free what another made, and the NVIDIA driver refuses these calls, too, in a
// thread without a context (CUDA_ERROR_INVALID_CONTEXT).
void GpuDevice::use_to_give_back() const noexcept {
  try {
    use();
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
    // A lost device frees what it can.
  }
}

GpuDevice::~GpuDevice() {
  use_to_give_back();
  driver_.destroy_stream(default_stream_.handle);
}

std::string GpuDevice::description() const {
  const std::string out = cat(properties_.name, ", ", properties_.architecture, ", ",
                              properties_.total_memory >> 20, " MiB, ");
  const std::string_view warning = experimental(driver_.kind());
  if (!warning.empty()) return cat(out, warning);
  return cat(out, properties_.multiprocessors,
             driver_.kind() == DeviceKind::rocm ? " compute units" : " multiprocessors");
}

MemoryInfo GpuDevice::memory() const {
  MemoryInfo memory = named("memory", [&] { return driver_.memory(); });
  memory.free += allocator_.stats().cached;
  return memory;
}

void* GpuDevice::allocate(size_t bytes, Stream& stream) {
  return allocator_.allocate(bytes, stream.handle);
}

void GpuDevice::free(void* data, size_t, Stream& stream) noexcept {
  allocator_.free(data, stream.handle);
}

void* GpuDevice::allocate_host(size_t bytes) {
  try {
    use();
    return driver_.allocate_host(bytes);
  } catch (const Error& error) {
    fail(error.code(), "allocate_host", bytes, " bytes on ", id(), ": ", error.what());
  }
}

void GpuDevice::free_host(void* data, size_t) noexcept {
  if (data == nullptr) return;
  use_to_give_back();
  driver_.free_host(data);
}

void GpuDevice::copy(void* to, const void* from, size_t bytes, CopyKind kind, Stream& stream) {
  if (bytes == 0) return;
  named("copy", [&] { driver_.copy(to, from, bytes, kind, stream.handle); }, stream.handle);
  ++streams_.of(stream.handle).queued;
}

bool GpuDevice::copy_peer(const PeerCopy& copy) {
  const auto* source = dynamic_cast<const GpuDevice*>(copy.from_stream.device);
  if (source == nullptr || &source->driver_ != &driver_) return false;
  if (copy.bytes == 0) return true;
  const auto queue = [&] {
    driver_.copy_peer(copy.to, ordinal_, copy.from, source->ordinal_, copy.bytes,
                      copy.to_stream.handle);
  };
  run_after(copy.to_stream, copy.from_stream);
  named("copy_peer", queue, copy.to_stream.handle);
  run_after(copy.from_stream, copy.to_stream);
  return true;
}

void GpuDevice::fill_bytes(void* data, uint8_t value, size_t bytes, Stream& stream) {
  if (bytes == 0) return;
  named("fill", [&] { driver_.fill(data, value, bytes, stream.handle); }, stream.handle);
  ++streams_.of(stream.handle).queued;
}

Stream GpuDevice::create_stream() {
  const auto create = [&] {
    void* handle = driver_.create_stream();
    try {
      streams_.add(handle);
    } catch (...) {
      streams_.remove(handle);
      driver_.destroy_stream(handle);
      throw;
    }
    return handle;
  };
  return {this, named("create_stream", create)};
}

void GpuDevice::destroy_stream(Stream& stream) noexcept {
  try {
    synchronize(stream);
    allocator_.move_stream(stream.handle, default_stream_.handle);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
    // A lost device frees what it can.
  }
  streams_.remove(stream.handle);
  driver_.destroy_stream(std::exchange(stream.handle, nullptr));
}

void GpuDevice::synchronize(Stream& stream) {
  named("synchronize", [&] { driver_.synchronize(stream.handle); }, stream.handle);
  note_end(stream.handle);
}

void* GpuDevice::create_event() {
  return named("create_event", [&] { return driver_.create_event(false); });
}

void GpuDevice::destroy_event(void* event) noexcept {
  use_to_give_back();
  driver_.destroy_event(event);
}

void GpuDevice::record_event(void* event, Stream& stream) {
  named("record_event", [&] { driver_.record_event(event, stream.handle); }, stream.handle);
}

void GpuDevice::wait_event(void* event, Stream& stream) {
  named("wait_event", [&] { driver_.wait_event(event, stream.handle); }, stream.handle);
}

void GpuDevice::begin_capture(Stream& stream) {
  named("begin_capture", [&] { driver_.begin_capture(stream.handle); }, stream.handle);
  allocator_.begin_pool(stream.handle);
  const std::scoped_lock lock(captured_mutex_);
  captured_kernels_.clear();
  capturing_ = true;
}

void* GpuDevice::end_capture(Stream& stream) {
  capturing_ = false;
  const uint64_t pool = allocator_.end_pool();
  try {
    const auto end = [&] { return driver_.end_capture(stream.handle); };
    void* graph = named("end_capture", end, stream.handle);
    const std::scoped_lock lock(captured_mutex_);
    return new Captured{
        .graph = graph, .pool = pool, .kernels = std::exchange(captured_kernels_, {})};
  } catch (...) {
    allocator_.release_pool(pool);
    throw;
  }
}

void GpuDevice::note_kernel(const char* op, const char* kernel, const Stream& stream) {
  if (!capturing_) return note_launch(op, kernel, stream.handle);
  const std::string entry = cat(op, " ", kernel);
  const std::scoped_lock lock(captured_mutex_);
  const bool fits = captured_kernels_.size() + entry.size() < kMostNames;
  if (!fits || captured_kernels_.find(entry) != std::string::npos) return;
  captured_kernels_ += cat(captured_kernels_.empty() ? "" : ", ", entry);
}

void GpuDevice::launch_capture(void* captured, Stream& stream) {
  void* graph = static_cast<const Captured*>(captured)->graph;
  note_launch("replay of", static_cast<const Captured*>(captured)->kernels.c_str(), stream.handle);
  named("launch_capture", [&] { driver_.launch_graph(graph, stream.handle); }, stream.handle);
  streams_.of(stream.handle).last_op = "launch_capture";
}

void GpuDevice::destroy_capture(void* captured) noexcept {
  const std::unique_ptr<Captured> own(static_cast<Captured*>(captured));
  if (!own) return;
  forget_launches();
  use_to_give_back();
  driver_.destroy_graph(own->graph);
  allocator_.release_pool(own->pool);
}

}  // namespace rbee::gpu
