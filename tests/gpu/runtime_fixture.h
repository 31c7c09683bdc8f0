#pragma once
// Tests of the GPU runtime over the fake drivers of both vendors.

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "backends/cuda/cuda_kernels.h"
#include "backends/gpu/gpu_device.h"
#include "backends/rocm/rocm_kernels.h"
#include "rbee/core/error.h"
#include "tests/gpu/fake_library.h"

namespace rbee::harness {

inline constexpr int64_t kMiB = int64_t{1} << 20;

// The message of the error that `action` throws; "none" when it throws nothing.
template <typename Action>
std::pair<Code, std::string> error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {Code::internal, "none"};
}

class RuntimeTest : public ::testing::TestWithParam<Vendor> {
 protected:
  bool cuda() const { return GetParam() == Vendor::cuda; }
  std::string kind() const { return cuda() ? "cuda" : "rocm"; }

  gpu::Vendor vendor(gpu::Driver& driver) const {
    return {.driver = &driver,
            .images = cuda() ? cuda::cuda_images() : rocm::rocm_images(),
            .kernels = cuda() ? &cuda::cuda_kernels : &rocm::rocm_kernels};
  }
};

inline auto both_vendors() {
  return ::testing::Values(Vendor::cuda, Vendor::rocm);
}

inline std::string name_of_vendor(const ::testing::TestParamInfo<Vendor>& p) {
  return p.param == Vendor::cuda ? "cuda" : "rocm";
}

}  // namespace rbee::harness
