#pragma once
// Tests of the GPU runtime over the fake drivers of the backends that are built.

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "backends/gpu/gpu_device.h"
#include "rbee/core/error.h"
#include "tests/gpu/fake_library.h"

namespace rbee::harness {

inline constexpr int64_t kMiB = int64_t{1} << 20;

// The message of the error that `action` throws; "none" if it throws nothing.
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

  static gpu::Vendor vendor(gpu::Driver& driver) { return with_driver(GetParam(), driver); }
};

inline auto each_vendor() {
  return ::testing::ValuesIn(built_vendors());
}

inline std::string name_of_vendor(const ::testing::TestParamInfo<Vendor>& p) {
  return p.param == Vendor::cuda ? "cuda" : "rocm";
}

}  // namespace rbee::harness
