#pragma once
// A GPU of any size that computes nothing. Real GPUs' allocator hands out addresses without memory,
// so tests can count what a model of true size needs.

#include <cstring>

#include "backends/api/kernel_table.h"
#include "backends/gpu/device_allocator.h"
#include "rbee/core/error.h"

namespace rbee::test {

// Hands out addresses up to `limit` bytes.
class CountingDriver final : public gpu::Driver {
 public:
  explicit CountingDriver(int64_t limit) : limit_(limit) {}

  int64_t used() const { return used_; }
  int64_t peak() const { return peak_; }
  // Whether this driver made the address, which must not be dereferenced.
  static bool owns(const void* data) { return reinterpret_cast<uintptr_t>(data) >= kFirst; }

  DeviceKind kind() const override { return DeviceKind::cuda; }
  std::string version() const override { return "counting"; }
  int device_count() override { return 1; }
  std::string hidden_by() const override { return ""; }
  gpu::Properties properties(int) override { return {}; }
  void release(int) noexcept override {}
  void use(int) override {}
  MemoryInfo memory() override { return {limit_, limit_ - used_}; }
  void* allocate(size_t bytes) override {
    const auto wanted = static_cast<int64_t>(bytes);
    if (used_ + wanted > limit_) fail(Code::out_of_memory, "allocate", bytes, " bytes");
    used_ += wanted;
    peak_ = std::max(peak_, used_);
    void* data = reinterpret_cast<void*>(next_);
    next_ += bytes;
    sizes_[data] = wanted;
    return data;
  }
  void free(void* data) noexcept override {
    const auto found = sizes_.find(data);
    if (found == sizes_.end()) return;
    used_ -= found->second;
    sizes_.erase(found);
  }
  void* allocate_host(size_t bytes) override {
    void* data = reinterpret_cast<void*>(next_);
    next_ += bytes;
    return data;
  }
  void free_host(void*) noexcept override {}
  void copy(void* to, const void*, size_t bytes, CopyKind kind, void*) override {
    if (kind == CopyKind::device_to_host && !owns(to)) std::memset(to, 0, bytes);
  }
  void copy_peer(void*, int, const void*, int, size_t, void*) override {}
  void fill(void*, uint8_t, size_t, void*) override {}
  void* create_stream() override { return nullptr; }
  void destroy_stream(void*) noexcept override {}
  void synchronize(void*) override {}
  void* create_event(bool) override { return nullptr; }
  void destroy_event(void*) noexcept override {}
  void record_event(void*, void*) override {}
  void wait_event(void*, void*) override {}
  void synchronize_event(void*) override {}
  float elapsed_ms(void*, void*) override { return 0; }
  void* load_module(std::span<const std::byte>) override { return nullptr; }
  void unload_module(void*) noexcept override {}
  void* find_kernel(void*, const char*) override { return nullptr; }
  bool waits_itself(void*) override { return false; }
  void allow_shared(void*, size_t) override {}
  void launch(const gpu::KernelLaunch&, void*, const void*) override {}
  void begin_capture(void*) override {}
  void* end_capture(void*) override { return nullptr; }
  void launch_graph(void*, void*) override {}
  void destroy_graph(void*) noexcept override {}

 private:
  static constexpr uintptr_t kFirst = uintptr_t{1} << 56;  // above every address of a real program
  int64_t limit_;
  int64_t used_ = 0, peak_ = 0;
  uintptr_t next_ = kFirst;
  std::map<void*, int64_t> sizes_;
};

namespace detail {

template <typename Args>
constexpr Impl<Args> kNothing[] = {{"nothing", never_refuse<Args>, [](const Args&, Stream&) {}}};

template <typename... Args>
void fill_slots(Slot<Args>&... slots) {
  ((slots = kNothing<Args>), ...);
}

// The kernels of the operations of image models; they do nothing.
inline KernelTable idle_kernels() {
  KernelTable t;
  fill_slots(t.affine, t.unary, t.binary, t.cast, t.copy, t.copy2d, t.fill, t.gated, t.layer_norm,
             t.upsample, t.image_conv, t.image_group_norm, t.embedding, t.linear, t.fused_linear,
             t.pack_weight, t.attention, t.random);
  return t;
}

}  // namespace detail

class CountingDevice final : public Device {
 public:
  explicit CountingDevice(int64_t limit) : driver_(limit), allocator_(driver_, 0) {}

  gpu::AllocatorStats stats() const { return allocator_.stats(); }
  void reset_peak() { allocator_.reset_peak(); }
  const CountingDriver& driver() const { return driver_; }

  DeviceId id() const override { return {DeviceKind::cuda, 0}; }
  std::string description() const override { return "counting"; }
  MemoryInfo memory() const override { return const_cast<CountingDriver&>(driver_).memory(); }
  bool host_accessible() const override { return false; }
  const KernelTable& kernels() const override { return kernels_; }
  void* allocate(size_t bytes, Stream& stream) override {
    return allocator_.allocate(bytes, stream.handle);
  }
  void free(void* data, size_t, Stream& stream) noexcept override {
    allocator_.free(data, stream.handle);
  }
  void* allocate_host(size_t bytes) override { return driver_.allocate_host(bytes); }
  void free_host(void*, size_t) noexcept override {}
  void copy(void* to, const void* from, size_t bytes, CopyKind kind, Stream& stream) override {
    driver_.copy(to, from, bytes, kind, stream.handle);
  }
  void fill_bytes(void*, uint8_t, size_t, Stream&) override {}
  Stream& default_stream() override { return stream_; }
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
  CountingDriver driver_;
  gpu::DeviceAllocator allocator_;
  KernelTable kernels_ = detail::idle_kernels();
  Stream stream_{this, nullptr};
};

}  // namespace rbee::test
