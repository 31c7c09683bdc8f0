// Every operation's case on the fake devices of each architecture: every kernel that the host names
// must be in the image and accept its parameter; every launch and tensor map must keep the limits;
// no copy may be out of bounds, and no memory may stay behind. Results are not checked: nothing
// computes them here.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/gpu_kernels.h"
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

struct Runs {
  int all = 0, copied = 0;  // copied: by tensor maps
};
// Runs every case of these operations, of all if there are none, by every implementation that
// takes it.
Runs run_every_case(gpu::GpuDevice& device, const FakeLibrary& library,
                    const std::set<std::string>& ops = {}) {
  Runs runs;
  for (const OpTable& table : op_tables()) {
    if (!ops.empty() && !ops.contains(std::string(table.op()))) continue;
    for (const OpCase& c : table.cases()) {
      SCOPED_TRACE(cat(table.op(), ": ", c.name));
      const std::unique_ptr<CaseRun> run = c.set_up(device);
      const int before = runs.all;
      for (int i = 0; i < run->implementations(); ++i) {
        if (run->refusal(i) != nullptr) continue;
        EXPECT_NO_THROW(run->run(i)) << run->name(i);
        ++runs.all;
        if (std::string_view(run->name(i)).starts_with("tma")) ++runs.copied;
      }
      EXPECT_TRUE(runs.all > before || may_be_refused(table.op(), c.name)) << "no kernel takes it";
      EXPECT_EQ(library.violation(), "");
      if (!library.violation().empty()) return runs;
    }
  }
  EXPECT_GE(library.launches(), runs.all / 2);
  EXPECT_EQ(device.allocator_stats().in_use, 0);
  return runs;
}

TEST_P(LaunchesTest, EveryCaseFindsItsKernels) {
  const auto [vendor, architecture, lanes] = GetParam();
  if (!embedded(GetParam())) GTEST_SKIP() << "not among this build's architectures";
  const FakeLibrary library(
      vendor, {.architecture = architecture, .lanes = lanes, .memory = int64_t{8} << 30});
  const auto driver = library.open();
  gpu::GpuDevice device(with_driver(vendor, *driver), 0);
  const Runs runs = run_every_case(device, library);
  EXPECT_GT(runs.all, 1000);
  EXPECT_GE(
      library.calls("cuTensorMapEncodeTiled", "") + library.calls("cuTensorMapEncodeIm2col", ""),
      runs.copied);
}

// The kernels of all vendors, of operations that can take more: some devices have no more than
// 32 KiB of shared memory for a block.
TEST(SmallSharedMemory, CommonKernelsStayWithin32KiB) {
  const Target target{Vendor::rocm, "gfx1100", 32};
  if (!embedded(target)) GTEST_SKIP() << "not among this build's architectures";
  const FakeLibrary library(
      target.vendor,
      {.architecture = target.architecture, .lanes = target.lanes, .memory = int64_t{8} << 30});
  library.tell_shared(32 << 10);
  const auto driver = library.open();
  gpu::Vendor vendor = with_driver(target.vendor, *driver);
  vendor.kernels = [](const gpu::Properties&) -> const KernelTable& {
    static const KernelTable table = gpu::common_kernels();
    return table;
  };
  gpu::GpuDevice device(vendor, 0);
  const Runs runs =
      run_every_case(device, library, {"attention", "fused_linear", "image_group_norm", "top_k"});
  EXPECT_GT(runs.all, 100);
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
