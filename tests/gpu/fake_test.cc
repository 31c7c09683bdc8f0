// The fake drivers find what real ones would let pass or crash on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/gpu/runtime_fixture.h"

namespace rbee::harness {
namespace {

using ::testing::HasSubstr;

TEST(FakeTest, FindsMistakes) {
  const FakeLibrary library(Vendor::rocm);
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
  const FakeLibrary forget(Vendor::rocm);
}

TEST(FakeTest, FindsRaces) {
  const FakeLibrary library(Vendor::cuda);
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
  const FakeLibrary forget(Vendor::cuda);
}

TEST(FakeTest, FindsWritesOverWhatIsStillRead) {
  const FakeLibrary library(Vendor::rocm);
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
  const FakeLibrary forget(Vendor::rocm);
}

TEST(FakeTest, FindsCopiesOfAnotherDevicesMemory) {
  const FakeLibrary library(Vendor::cuda, {.devices = 2});
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
  const FakeLibrary forget(Vendor::cuda);
}

TEST(FakeTest, FindsLaunchesBeyondTheArchitecture) {
  struct Limit {
    Vendor vendor;
    const char* architecture;
    uint32_t fits, grid_x;
  };
  for (const auto& [vendor, architecture, fits, grid_x] :
       {Limit{Vendor::cuda, "sm_90", 227 << 10, 0x7fffffff},
        Limit{Vendor::cuda, "sm_86", 99 << 10, 0x7fffffff},
        Limit{Vendor::rocm, "gfx942", 64 << 10, (1 << 24) - 1},
        Limit{Vendor::rocm, "gfx950", 160 << 10, (1 << 24) - 1}}) {
    const bool cuda = vendor == Vendor::cuda;
    const auto images = cuda ? cuda::cuda_images() : rocm::rocm_images();
    const gpu::KernelImage* image = gpu::find_image(images, "cast", cuda ? "sm_90" : architecture);
    if (image == nullptr) continue;  // not among this build's architectures
    for (const int beyond : {0, 1}) {
      const FakeLibrary library(vendor, {.architecture = architecture});
      {
        const auto driver = library.open();
        driver->use(0);
        void* stream = driver->create_stream();
        void* module = driver->load_module(image->bytes);
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
          EXPECT_THROW(driver->launch(launch, stream, params.data()), Error) << architecture;
        }
        driver->unload_module(module);
        driver->destroy_stream(stream);
      }
      EXPECT_EQ(library.violation().empty(), beyond == 0) << library.violation();
      const FakeLibrary forget(vendor);
    }
  }
}

}  // namespace
}  // namespace rbee::harness
