// The fake drivers find mistakes that real drivers would ignore or crash on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <thread>
#include <vector>

#include "backends/shared/elementwise_params.h"
#include "tests/gpu/runtime_fixture.h"

namespace rbee::harness {
namespace {

using ::testing::HasSubstr;

class FakeTest : public RuntimeTest {};

INSTANTIATE_TEST_SUITE_P(Vendors, FakeTest, each_vendor(), name_of_vendor);

TEST_P(FakeTest, FindsMistakes) {
  const FakeLibrary library(GetParam());
  {
    const auto driver = library.open();
    driver->use(0);
    void* stream = driver->create_stream();
    void* data = driver->allocate(100);
    std::vector<std::byte> host(200);
    EXPECT_THROW(driver->copy(data, host.data(), 200, CopyKind::host_to_device, stream), Error);
    driver->free(data);
    driver->destroy_stream(stream);
  }
  EXPECT_THAT(library.violation(), HasSubstr("copy of 200 bytes that are not within one"));
  const FakeLibrary forget(GetParam());
}

TEST_P(FakeTest, FindsRaces) {
  const FakeLibrary library(GetParam());
  {
    const auto driver = library.open();
    driver->use(0);
    void* writer = driver->create_stream();
    void* reader = driver->create_stream();
    void* data = driver->allocate(4);
    uint32_t value = 1;
    driver->copy(data, &value, 4, CopyKind::host_to_device, writer);
    driver->copy(&value, data, 4, CopyKind::device_to_host, reader);
    EXPECT_THAT(library.violation(), HasSubstr("races"));
    driver->free(data);
    driver->destroy_stream(writer);
    driver->destroy_stream(reader);
  }
  const FakeLibrary forget(GetParam());
}

TEST_P(FakeTest, FindsWritesOverWhatIsStillRead) {
  const FakeLibrary library(GetParam());
  {
    const auto driver = library.open();
    driver->use(0);
    void* reader = driver->create_stream();
    void* writer = driver->create_stream();
    void* data = driver->allocate(16);
    char host[16];
    driver->copy(host, data, 16, CopyKind::device_to_host, reader);
    driver->fill(data, 0, 16, writer);
    driver->free(data);
    driver->destroy_stream(reader);
    driver->destroy_stream(writer);
  }
  EXPECT_THAT(library.violation(), HasSubstr("races with a read"));
  const FakeLibrary forget(GetParam());
}

// In HIP every thread has a device, so only a wrong one is a mistake.
TEST_P(FakeTest, FindsWorkForADeviceThatIsNotCurrent) {
  const FakeLibrary library(GetParam(), {.devices = 2});
  {
    const auto driver = library.open();
    driver->use(1);
    void* stream = driver->create_stream();
    void* event = driver->create_event(false);
    std::thread([&] { EXPECT_THROW(driver->record_event(event, stream), Error); }).join();
    driver->destroy_event(event);
    driver->destroy_stream(stream);
  }
  EXPECT_EQ(library.violation(), cuda() ? "cuEventRecord by a thread that made no device current"
                                        : "record on device 1 while 0 is current");
  const FakeLibrary forget(GetParam());
}

TEST_P(FakeTest, TellsWhatIsNotGivenBack) {
  const FakeLibrary library(GetParam());
  const auto driver = library.open();
  driver->use(0);
  void* event = driver->create_event(false);
  void* host = driver->allocate_host(16);
  EXPECT_EQ(library.live_objects(), "1 events, 1 pieces of host memory");
  driver->free_host(host);
  driver->destroy_event(event);
}

TEST_P(FakeTest, FindsCopiesOfAnotherDevicesMemory) {
  const FakeLibrary library(GetParam(), {.devices = 2});
  {
    const auto driver = library.open();
    driver->use(0);
    void* stream = driver->create_stream();
    void* data = driver->allocate(16);
    driver->copy_peer(data, 1, data, 0, 16, stream);
    driver->free(data);
    driver->destroy_stream(stream);
  }
  EXPECT_THAT(library.violation(), HasSubstr("another device's"));
  const FakeLibrary forget(GetParam());
}

struct Limit {
  Vendor vendor;
  const char* architecture;
  uint32_t fits, grid_x;
};

class FakeArchitecturesTest : public ::testing::TestWithParam<Limit> {};

TEST_P(FakeArchitecturesTest, FindsLaunchesBeyondTheArchitecture) {
  const auto& [vendor, architecture, fits, grid_x] = GetParam();
  const gpu::KernelImage* image =
      is_built(vendor) ? gpu::find_image(images_of(vendor), "cast", architecture) : nullptr;
  if (image == nullptr) GTEST_SKIP() << "no kernels for " << architecture << " in this build";
  for (const int beyond : {0, 1}) {
    const FakeLibrary library(vendor, {.architecture = architecture});
    {
      const auto driver = library.open();
      driver->use(0);
      void* stream = driver->create_stream();
      void* module = driver->load_module(gpu::open_image(*image));
      gpu::KernelLaunch launch{.kernel = driver->find_kernel(module, "cast_f32_f16"),
                               .grid = {.x = grid_x},
                               .threads = 256,
                               .shared_bytes = fits};
      std::vector<std::byte> params(4096);
      driver->allow_shared(launch.kernel, fits);
      launch.shared_bytes += static_cast<uint32_t>(beyond);
      if (beyond == 0) {
        driver->launch(launch, stream, params.data());
      } else {
        EXPECT_THROW(driver->launch(launch, stream, params.data()), Error);
      }
      driver->unload_module(module);
      driver->destroy_stream(stream);
    }
    EXPECT_EQ(library.violation().empty(), beyond == 0) << library.violation();
    const FakeLibrary forget(vendor);
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, FakeArchitecturesTest,
                         ::testing::Values(Limit{Vendor::cuda, "sm_90", 227 << 10, 0x7fffffff},
                                           Limit{Vendor::cuda, "sm_86", 99 << 10, 0x7fffffff},
                                           Limit{Vendor::rocm, "gfx942", 64 << 10, (1 << 24) - 1},
                                           Limit{Vendor::rocm, "gfx950", 160 << 10, (1 << 24) - 1}),
                         [](const auto& p) { return std::string(p.param.architecture); });

// The fake's message about a launch of one of the cast kernels.
std::string said_of_cast(Vendor vendor, const char* kernel, uint32_t params_bytes) {
  const FakeLibrary library(vendor);
  std::string said;
  {
    const auto driver = library.open();
    driver->use(0);
    void* stream = driver->create_stream();
    const gpu::KernelImage* image =
        gpu::find_image(images_of(vendor), "cast", driver->properties(0).architecture);
    void* module = driver->load_module(gpu::open_image(*image));
    const gpu::KernelLaunch launch{
        .kernel = driver->find_kernel(module, kernel), .threads = 64, .params_bytes = params_bytes};
    const shared::CopyParams params{};
    if (launch.kernel == nullptr) {
      said = "no kernel";
    } else {
      said = error_of([&] { driver->launch(launch, stream, &params); }).second;
    }
    driver->unload_module(module);
    driver->destroy_stream(stream);
  }
  if (!library.violation().empty()) said = library.violation();
  const FakeLibrary forget(vendor);
  return said;
}

TEST_P(FakeTest, KnowsAnImagesKernelsAndTheirParameters) {
  constexpr uint32_t kBytes = sizeof(shared::CopyParams);
  EXPECT_EQ(said_of_cast(GetParam(), "cast_f32_f16", kBytes), "none");
  EXPECT_EQ(said_of_cast(GetParam(), "cast_f32_f17", kBytes), "no kernel");
  EXPECT_EQ(said_of_cast(GetParam(), "cast_f32_f16", kBytes - 8),
            cat("cast_f32_f16 takes ", kBytes, " bytes of parameters, not ", kBytes - 8));
}

// A code object of `cast` with changed metadata: the value of `key`, a byte, becomes `value`.
std::vector<std::byte> changed_cast(const FakeLibrary& library, gpu::Driver& driver,
                                    std::string_view key, uint8_t value) {
  const auto architecture = driver.properties(0).architecture;
  std::vector<std::byte> out =
      gpu::open_image(*gpu::find_image(images_of(library.vendor()), "cast", architecture));
  const auto same = [](std::byte a, char b) { return static_cast<char>(a) == b; };
  for (auto at = out.begin();;) {
    at = std::search(at, out.end(), key.begin(), key.end(), same);
    if (at == out.end()) return out;
    at += static_cast<ptrdiff_t>(key.size());
    *at = static_cast<std::byte>(value);
  }
}

TEST(FakeArgumentsTest, BeginWhereTheKernelsMetadataSays) {
  if (!is_built(Vendor::rocm)) GTEST_SKIP() << "no ROCm in this build";
  for (const size_t offset : {0, 16}) {
    const FakeLibrary library(Vendor::rocm);
    {
      const auto driver = library.open();
      driver->use(0);
      void* stream = driver->create_stream();
      const auto image = changed_cast(library, *driver, ".kernarg_segment_align", 64);
      void* module = driver->load_module(image);
      alignas(64) std::byte params[sizeof(shared::CopyParams) + 64] = {};
      const gpu::KernelLaunch launch{.kernel = driver->find_kernel(module, "cast_f32_f16"),
                                     .threads = 64,
                                     .params_bytes = sizeof(shared::CopyParams)};
      const auto said = error_of([&] { driver->launch(launch, stream, params + offset); }).second;
      EXPECT_EQ(said == "none", offset == 0) << said;
      driver->unload_module(module);
      driver->destroy_stream(stream);
    }
    EXPECT_THAT(library.violation(), HasSubstr(offset == 0 ? "" : "do not begin at a multiple"));
    const FakeLibrary forget(Vendor::rocm);
  }
}

TEST(FakeArgumentsTest, EndWithinTheirSegment) {
  if (!is_built(Vendor::rocm)) GTEST_SKIP() << "no ROCm in this build";
  const FakeLibrary library(Vendor::rocm);
  {
    const auto driver = library.open();
    driver->use(0);
    // 0xcd: a two-byte number follows, and this is its first byte. The segment gets smaller.
    const auto image = changed_cast(library, *driver, ".kernarg_segment_size", 8);
    EXPECT_THROW(driver->load_module(image), Error);
  }
  EXPECT_NE(library.violation(), "");
  const FakeLibrary forget(Vendor::rocm);
}

// A launch's shared memory is added to the kernel's own.
TEST(FakeLimitsTest, SharedMemoryIsTheSumOfBoth) {
  if (!is_built(Vendor::rocm)) GTEST_SKIP() << "no ROCm in this build";
  constexpr uint32_t kAll = 64 << 10;
  constexpr uint32_t kOwn = 16 << 10;  // gemm_f16_small's
  for (const uint32_t beyond : {0, 1}) {
    const FakeLibrary library(Vendor::rocm);
    {
      const auto driver = library.open();
      driver->use(0);
      void* stream = driver->create_stream();
      void* module = driver->load_module(
          gpu::open_image(*gpu::find_image(images_of(Vendor::rocm), "gemm", "gfx942")));
      alignas(16) const std::byte params[4096] = {};
      const gpu::KernelLaunch launch{.kernel = driver->find_kernel(module, "gemm_f16_small"),
                                     .threads = 128,
                                     .shared_bytes = kAll - kOwn + beyond};
      const auto said = error_of([&] { driver->launch(launch, stream, params); }).second;
      EXPECT_EQ(said == "none", beyond == 0) << said;
      driver->unload_module(module);
      driver->destroy_stream(stream);
    }
    EXPECT_THAT(library.violation(), HasSubstr(beyond == 0 ? "" : "16384 + 49153 bytes shared"));
    const FakeLibrary forget(Vendor::rocm);
  }
}

}  // namespace
}  // namespace rbee::harness
