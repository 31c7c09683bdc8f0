// Every operation's case on the fake devices of each architecture: every kernel that the host names
// must be in the image and accept its parameter; every launch and tensor map must keep the limits;
// no copy may be out of bounds, and no memory may stay behind. Results are not checked: nothing
// computes them here.
#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/gpu/gpu_device.h"
#include "rbee/core/error.h"
#include "tests/gpu/fake_library.h"
#include "tests/support/op_table.h"

namespace rbee::harness {
namespace {

struct Target {
  Vendor vendor;
  const char* architecture;
  int lanes;
};

class LaunchesTest : public ::testing::TestWithParam<Target> {};

// NVIDIA's one image is for all architectures.
bool embedded(const Target& target) {
  return is_built(target.vendor) &&
         gpu::find_image(images_of(target.vendor), "rms_norm", target.architecture) != nullptr;
}

// If no kernel accepts a case, plain operations compute it, or pictures keep 16 bits.
bool may_be_refused(const std::string& op, const std::string& name) {
  return op == "fused_linear" || op == "linear_norm" || op == "qkv_append" ||
         (op == "image_conv" && name.find("q8_0") != std::string::npos);
}

TEST_P(LaunchesTest, EveryCaseFindsItsKernels) {
  const auto [vendor, architecture, lanes] = GetParam();
  if (!embedded(GetParam())) GTEST_SKIP() << "not among this build's architectures";
  const FakeLibrary library(
      vendor, {.architecture = architecture, .lanes = lanes, .memory = int64_t{8} << 30});
  const auto driver = library.open();
  gpu::GpuDevice device(with_driver(vendor, *driver), 0);
  int runs = 0, copied = 0;
  for (const OpTable& table : op_tables()) {
    for (const OpCase& c : table.cases()) {
      SCOPED_TRACE(cat(table.op(), ": ", c.name));
      const std::unique_ptr<CaseRun> run = c.set_up(device);
      const int before = runs;
      for (int i = 0; i < run->implementations(); ++i) {
        if (run->refusal(i) != nullptr) continue;
        EXPECT_NO_THROW(run->run(i)) << run->name(i);
        ++runs;
        if (std::string_view(run->name(i)).starts_with("tma")) ++copied;
      }
      EXPECT_TRUE(runs > before || may_be_refused(table.op(), c.name)) << "no kernel takes it";
      ASSERT_EQ(library.violation(), "");
    }
  }
  EXPECT_GT(runs, 1000);
  EXPECT_GE(
      library.calls("cuTensorMapEncodeTiled", "") + library.calls("cuTensorMapEncodeIm2col", ""),
      copied);
  EXPECT_GE(library.launches(), runs / 2);
  EXPECT_EQ(device.allocator_stats().in_use, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Targets, LaunchesTest,
    ::testing::Values(Target{Vendor::rocm, "gfx90a", 64}, Target{Vendor::rocm, "gfx942", 64},
                      Target{Vendor::rocm, "gfx950", 64}, Target{Vendor::rocm, "gfx1030", 32},
                      Target{Vendor::rocm, "gfx1100", 32}, Target{Vendor::rocm, "gfx1201", 32},
                      Target{Vendor::cuda, "sm_80", 32}, Target{Vendor::cuda, "sm_86", 32},
                      Target{Vendor::cuda, "sm_90", 32}),
    [](const auto& p) { return std::string(p.param.architecture); });

}  // namespace
}  // namespace rbee::harness
