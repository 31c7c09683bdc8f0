#pragma once
// Tests of the Metal driver over the fake Metal, with kernels in the form of backends/metal's text.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/gpu_kernels.h"
#include "backends/gpu/launch.h"
#include "backends/metal/metal_driver.h"
#include "rbee/core/error.h"
#include "tests/gpu/fake/fake_runtime.h"

namespace rbee::harness {

// The fake, reset for one test. Its end checks that no mistake was made and nothing stayed behind.
class FakeMetal {
 public:
  explicit FakeMetal(int devices = 1, const char* kind = "apple", int64_t memory = int64_t{1} << 30)
      : library_(dlopen(RBEE_FAKE_METAL, RTLD_NOW | RTLD_LOCAL)) {
    setenv("RBEE_METAL_LIBRARY", RBEE_FAKE_METAL, 1);
    setenv("RBEE_METAL_CACHE", "", 0);
    if (library_ == nullptr) throw std::runtime_error(dlerror());
    find<void(int, const char*, int, int64_t)>("rbee_fake_reset")(devices, kind, 32, memory);
  }
  ~FakeMetal() {
    EXPECT_EQ(violation(), expected_);
    EXPECT_EQ(live_objects(), "");
    EXPECT_EQ(live_bytes(), 0);
    dlclose(library_);
  }
  FakeMetal(const FakeMetal&) = delete;
  FakeMetal& operator=(const FakeMetal&) = delete;

  void fail(const char* call, int nth, int status, fake::Then then = fake::Then::goes_on) const {
    find<void(const char*, int, int, fake::Then)>("rbee_fake_fail")(call, nth, status, then);
  }
  std::string violation() const { return find<const char*()>("rbee_fake_violation")(); }
  // The mistake that this test makes.
  void expect(const std::string& violation) { expected_ = violation; }
  std::string live_objects() const { return find<const char*()>("rbee_fake_live_objects")(); }
  int64_t live_bytes() const { return find<int64_t()>("rbee_fake_live_bytes")(); }
  int64_t launches() const { return find<int64_t()>("rbee_fake_launches")(); }
  int64_t calls(const char* name) const {
    return find<int64_t(const char*)>("rbee_fake_calls")(name);
  }
  std::string types(const char* selector) const {
    return find<const char*(const char*)>("rbee_fake_metal_types")(selector);
  }

 private:
  template <typename Function>
  Function* find(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }

  void* library_;
  std::string expected_;
};

inline const char kHead[] = R"(#include <metal_stdlib>
using namespace metal;
#define RB_PLACES constant uchar* p [[buffer(0)]], constant uchar* launch_ [[buffer(1)]], \
    threadgroup uchar* dynamic_ RB_DYNAMIC, uint3 thread_ [[thread_position_in_threadgroup]], \
    uint3 group_ [[threadgroup_position_in_grid]], uint lane_ [[thread_index_in_simdgroup]]
#define RB_POINTER(n) \
    reinterpret_cast<device uchar*>(*reinterpret_cast<const constant ulong*>(p + n))
#define RB_Y reinterpret_cast<device uint*>(RB_POINTER(8))
)";

// Of CopyParams, for elements that lie one after another.
inline const char kMove[] = R"(
// kernel copy_b16 threads 256 shared 0
RB_ENTRY(256) void copy_b16(RB_PLACES) {
 device uchar* x = RB_POINTER(0);
 device uchar* y = RB_POINTER(8);
 uint count = *reinterpret_cast<const constant uint*>(p + 16);
 uint step = *reinterpret_cast<const constant uint*>(launch_) * 256u;
 for (uint i = group_.x * 256u + thread_.x; i < count; i += step) {
  reinterpret_cast<device uint4*>(y)[i] = reinterpret_cast<device uint4*>(x)[i];
 }
}
)";

// y[i] = x[255 - i] + x[i ^ 1] of each threadgroup's 256 words.
inline const char kTest[] = R"(
// kernel mirror threads 256 shared 1024
RB_ENTRY(256) void mirror(RB_PLACES) {
 RB_SHARED uint4 s_[64];
 threadgroup uint* s = reinterpret_cast<threadgroup uint*>(s_);
 uint v = reinterpret_cast<device uint*>(RB_POINTER(0))[group_.x * 256u + thread_.x];
 s[thread_.x] = v;
 threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
 uint other = simd_shuffle_xor(v, ushort(1u));
 RB_Y[group_.x * 256u + thread_.x] = s[255u - thread_.x] + other;
}
// kernel dynamic threads 64 shared 0
RB_ENTRY(64) void dynamic(RB_PLACES) {
 threadgroup uint* s = reinterpret_cast<threadgroup uint*>(dynamic_);
 s[thread_.x] = thread_.x;
 threadgroup_barrier(mem_flags::mem_threadgroup);
 RB_Y[thread_.x] = s[63u - thread_.x];
}
// kernel increment threads 64 shared 0
RB_ENTRY(64) void increment(RB_PLACES) {
 device atomic_uint* sum = reinterpret_cast<device atomic_uint*>(RB_POINTER(8));
 atomic_fetch_add_explicit(sum, 1u, memory_order_relaxed);
}
// kernel half_barrier threads 64 shared 0
RB_ENTRY(64) void half_barrier(RB_PLACES) {
 if (thread_.x < 40u) threadgroup_barrier(mem_flags::mem_threadgroup);
}
// kernel half_shuffle threads 64 shared 0
RB_ENTRY(64) void half_shuffle(RB_PLACES) {
 uint v = thread_.x;
 if (lane_ < 16u) v = simd_shuffle(v, ushort(20u));
 RB_Y[thread_.x] = v;
}
// kernel without_barrier threads 64 shared 256
RB_ENTRY(64) void without_barrier(RB_PLACES) {
 RB_SHARED uint4 s_[16];
 threadgroup uint* s = reinterpret_cast<threadgroup uint*>(s_);
 s[thread_.x] = thread_.x;
 RB_Y[thread_.x] = s[63u - thread_.x];
}
// kernel product threads 32 shared 512
RB_ENTRY(32) void product(RB_PLACES) {
 RB_SHARED uint4 s_[32];
 threadgroup float* s = reinterpret_cast<threadgroup float*>(s_);
 for (uint i = thread_.x; i < 64u; i += 32u) {
  s[i] = float(i);
  s[64u + i] = float(i % 8u == i / 8u + 1u ? 2u : 0u);
 }
 threadgroup_barrier(mem_flags::mem_threadgroup);
 simdgroup_float8x8 a, b, c = make_filled_simdgroup_matrix<float, 8>(0.5f);
 simdgroup_load(a, s, 8ul);
 simdgroup_load(b, s + 64, 8ul, ulong2(0ul, 0ul), true);
 simdgroup_multiply_accumulate(c, a, b, c);
 threadgroup_barrier(mem_flags::mem_threadgroup);
 simdgroup_store(c, s, 8ul);
 threadgroup_barrier(mem_flags::mem_threadgroup);
 for (uint i = thread_.x; i < 64u; i += 32u) RB_Y[i] = as_type<uint>(s[i]);
}
// kernel half_product threads 64 shared 0
RB_ENTRY(64) void half_product(RB_PLACES) {
 simdgroup_float8x8 a = make_filled_simdgroup_matrix<float, 8>(1.0f);
 if (thread_.x < 40u) simdgroup_multiply_accumulate(a, a, a, a);
}
// kernel large threads 32 shared 32768
RB_ENTRY(32) void large(RB_PLACES) {
 RB_SHARED uint4 s_[2048];
 s_[thread_.x] = uint4(thread_.x);
}
// kernel wrong threads 32 shared 0
RB_ENTRY(32) void wrong(RB_PLACES) {
 no_such_function(thread_.x);
}
)";

struct TestParams {
  const void* x = nullptr;
  void* y = nullptr;
};

// A device over the fake, with the families "test" and "move".
class MetalDevice {
 public:
  MetalDevice() : driver_(std::make_unique<metal::MetalDriver>()) {
    const auto kernels = [](const gpu::Properties&) -> const KernelTable& {
      static const KernelTable table = gpu::common_kernels();
      return table;
    };
    device_ = std::make_unique<gpu::GpuDevice>(
        gpu::Vendor{.driver = driver_.get(), .images = images_, .kernels = kernels}, 0);
  }

  gpu::GpuDevice& operator*() const { return *device_; }
  gpu::GpuDevice* operator->() const { return device_.get(); }
  metal::MetalDriver& driver() const { return *driver_; }
  Stream& stream() const { return device_->default_stream(); }

  void launch(const char* kernel, const TestParams& params, uint32_t threads = 64,
              uint32_t blocks = 1, uint32_t shared_bytes = 0) const {
    gpu::launch(stream(),
                {.op = "test",
                 .family = "test",
                 .kernel = gpu::KernelName(kernel),
                 .grid = {.x = blocks},
                 .threads = threads,
                 .shared_bytes = shared_bytes},
                params);
  }

 private:
  static std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span<const char>(text.data(), text.size()));
  }

  const std::string test_ = std::string(kHead) + kTest, move_ = std::string(kHead) + kMove;
  const gpu::KernelImage images_[2] = {
      {.family = "test", .architecture = "", .bytes = bytes_of(test_)},
      {.family = "move", .architecture = "", .bytes = bytes_of(move_)}};
  std::unique_ptr<metal::MetalDriver> driver_;
  std::unique_ptr<gpu::GpuDevice> device_;
};

template <typename Action>
std::pair<Code, std::string> error_in(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {Code::internal, "none"};
}

}  // namespace rbee::harness
