// Every operation's case on the fake AMD devices: every kernel that the host side names is in the
// code object, every launch is within its limits, nothing is copied out of bounds, and no memory
// stays behind. Results are not looked at: nothing computes them here.
#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/gpu/gpu_device.h"
#include "backends/rocm/rocm_kernels.h"
#include "rbee/core/error.h"
#include "tests/gpu/fake_library.h"
#include "tests/support/op_table.h"

namespace rbee::harness {
namespace {

struct Target {
  const char* architecture;
  int lanes;
};

class LaunchesTest : public ::testing::TestWithParam<Target> {};

bool embedded(const char* architecture) {
  return gpu::find_image(rocm::rocm_images(), "rms_norm", architecture) != nullptr;
}

TEST_P(LaunchesTest, EveryCaseFindsItsKernels) {
  const auto [architecture, lanes] = GetParam();
  if (!embedded(architecture)) GTEST_SKIP() << "not among this build's architectures";
  const FakeLibrary library(
      Vendor::rocm, {.architecture = architecture, .lanes = lanes, .memory = int64_t{8} << 30});
  const auto driver = library.open();
  gpu::GpuDevice device(
      {.driver = driver.get(), .images = rocm::rocm_images(), .kernels = &rocm::rocm_kernels}, 0);
  int runs = 0;
  for (const OpTable& table : op_tables()) {
    for (const OpCase& c : table.cases()) {
      SCOPED_TRACE(cat(table.op(), ": ", c.name));
      const std::unique_ptr<CaseRun> run = c.set_up(device);
      for (int i = 0; i < run->implementations(); ++i) {
        if (run->refusal(i) != nullptr) continue;
        EXPECT_NO_THROW(run->run(i)) << run->name(i);
        ++runs;
      }
      ASSERT_EQ(library.violation(), "");
    }
  }
  EXPECT_GT(runs, 1000);
  EXPECT_GE(library.launches(), runs / 2);
  EXPECT_EQ(device.allocator_stats().in_use, 0);
}

INSTANTIATE_TEST_SUITE_P(Targets, LaunchesTest,
                         ::testing::Values(Target{"gfx90a", 64}, Target{"gfx942", 64},
                                           Target{"gfx950", 64}, Target{"gfx1030", 32},
                                           Target{"gfx1100", 32}, Target{"gfx1201", 32}),
                         [](const auto& p) { return std::string(p.param.architecture); });

}  // namespace
}  // namespace rbee::harness
