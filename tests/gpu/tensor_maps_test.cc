// The fake driver refuses tensor maps, clusters and attributes like NVIDIA's, so that
// launches_test.cc finds bad requests of the host side.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "backends/cuda/cuda_driver.h"
#include "tests/gpu/runtime_fixture.h"

namespace rbee::harness {
namespace {

using ::testing::HasSubstr;

constexpr size_t kBytes = 64 * 32 * 2;

class TensorMapsTest : public ::testing::Test {
 protected:
  TensorMapsTest() : library_(Vendor::cuda), driver_(library_.open()) {
    driver_->use(0);
    data_ = driver_->allocate(kBytes);
  }
  ~TensorMapsTest() override {
    driver_->free(data_);
    const FakeLibrary forget(Vendor::cuda);
  }
  // The driver's objection; empty if there is none.
  template <typename Tensor>
  std::string fault(const Tensor& tensor) {
    error_of([&] { dynamic_cast<cuda::CudaDriver&>(*driver_).tensor_map(tensor); });
    return library_.violation();
  }
  // 32 rows of 64 f16.
  cuda::TensorMapTiles tiles() const {
    return {
        .data = data_, .sizes = {64, 32, 1, 1}, .strides = {128, 4096, 4096}, .box = {64, 8, 1, 1}};
  }
  // Two images of 4 by 4 pixels of 64 channels.
  cuda::TensorPixels pixels() const {
    return {.data = data_,
            .sizes = {64, 4, 4, 2},
            .strides = {128, 512, 2048},
            .lower = {-1, -1},
            .upper = {-1, -1},
            .channels = 64,
            .pixels = 16};
  }

  FakeLibrary library_;
  std::unique_ptr<gpu::Driver> driver_;
  void* data_ = nullptr;
};

TEST_F(TensorMapsTest, WhatFitsIsTaken) {
  EXPECT_EQ(fault(tiles()), "");
  EXPECT_EQ(fault(pixels()), "");
}

TEST_F(TensorMapsTest, FindsTilesBeyondTheAllocation) {
  cuda::TensorMapTiles wrong = tiles();
  wrong.sizes[1] = 33;
  EXPECT_THAT(fault(wrong), HasSubstr("tensor map of 4224 bytes that are not within one"));
}

TEST_F(TensorMapsTest, FindsStridesOfOddBytes) {
  cuda::TensorMapTiles wrong = tiles();
  wrong.strides[0] = 120;
  EXPECT_EQ(fault(wrong), "tensor map with a stride of 120");
}

TEST_F(TensorMapsTest, FindsRowsThatAreTooLongToSwizzle) {
  cuda::TensorMapTiles wrong = tiles();
  wrong.box[0] = 72;
  EXPECT_EQ(fault(wrong), "tensor map with swizzled rows of bytes: 144");
}

TEST_F(TensorMapsTest, FindsPixelsBeyondTheAllocation) {
  cuda::TensorPixels wrong = pixels();
  wrong.sizes[3] = 3;
  EXPECT_THAT(fault(wrong), HasSubstr("tensor map of 6144 bytes that are not within one"));
}

TEST_F(TensorMapsTest, FindsCornersThatAreTooFarOut) {
  cuda::TensorPixels wrong = pixels();
  wrong.upper[1] = 128;
  EXPECT_EQ(fault(wrong), "tensor map with a corner at 128");
}

// Of an odd number of blocks the last would have no other; a kernel without one takes it.
TEST(ClustersTest, FindsHalfAPairOfBlocks) {
  for (const char* kernel : {"image_conv_f16_256x128", "image_conv_f16_join_256x128"}) {
    const FakeLibrary library(Vendor::cuda);
    bool found = false;
    {
      const auto driver = library.open();
      driver->use(0);
      void* stream = driver->create_stream();
      const gpu::KernelImage* image =
          gpu::find_image(images_of(Vendor::cuda), "image_conv_tma", "sm_90");
      void* module = driver->load_module(gpu::open_image(*image));
      const gpu::KernelLaunch launch{
          .kernel = driver->find_kernel(module, kernel), .grid = {.x = 3}, .threads = 64};
      if (launch.kernel != nullptr) {  // only code for sm_90a has it
        found = true;
        const std::vector<std::byte> params(4096);
        error_of([&] { driver->launch(launch, stream, params.data()); });
      }
      driver->unload_module(module);
      driver->destroy_stream(stream);
    }
    const bool paired = std::string(kernel).find("join") == std::string::npos;
    EXPECT_EQ(library.violation().empty(), !found || !paired) << library.violation();
    const FakeLibrary forget(Vendor::cuda);
  }
}

}  // namespace
}  // namespace rbee::harness
