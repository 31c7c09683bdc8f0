#include "tests/gpu/fake_library.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/cuda/cuda_driver.h"
#include "backends/rocm/hip_driver.h"

namespace rbee::harness {

FakeLibrary::FakeLibrary(Vendor vendor, const FakeOptions& options) : vendor_(vendor) {
  const bool cuda = vendor == Vendor::cuda;
  const char* path = cuda ? RBEE_FAKE_CUDA : options.hip_5 ? RBEE_FAKE_HIP_5 : RBEE_FAKE_HIP;
  setenv(cuda ? "RBEE_CUDA_LIBRARY" : "RBEE_HIP_LIBRARY", path, 1);
  library_ = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) throw std::runtime_error(dlerror());
  find<void(int, const char*, int, int64_t)>("rbee_fake_reset")(
      options.devices, options.architecture, options.lanes, options.memory);
}

FakeLibrary::~FakeLibrary() {
  EXPECT_EQ(violation(), "");
  EXPECT_EQ(live_bytes(), 0);
  dlclose(library_);
}

template <typename Function>
Function* FakeLibrary::find(const char* name) const {
  return reinterpret_cast<Function*>(dlsym(library_, name));
}

std::unique_ptr<gpu::Driver> FakeLibrary::open() const {
  if (vendor_ == Vendor::cuda) return std::make_unique<cuda::CudaDriver>();
  return std::make_unique<rocm::HipDriver>();
}

void FakeLibrary::fail(const char* cuda, const char* rocm, int nth, int status, bool sticky) const {
  find<void(const char*, int, int, int)>("rbee_fake_fail")(vendor_ == Vendor::cuda ? cuda : rocm,
                                                           nth, status, sticky ? 1 : 0);
}

int64_t FakeLibrary::calls(const char* cuda, const char* rocm) const {
  return find<int64_t(const char*)>("rbee_fake_calls")(vendor_ == Vendor::cuda ? cuda : rocm);
}

int64_t FakeLibrary::live_bytes() const {
  return find<int64_t()>("rbee_fake_live_bytes")();
}

int64_t FakeLibrary::launches() const {
  return find<int64_t()>("rbee_fake_launches")();
}

void FakeLibrary::set_launch_hook(fake::LaunchHook hook) const {
  find<void(fake::LaunchHook)>("rbee_fake_set_launch_hook")(hook);
}

std::string FakeLibrary::violation() const {
  return find<const char*()>("rbee_fake_violation")();
}

}  // namespace rbee::harness
