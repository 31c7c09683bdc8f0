// On every device, products of windows with weights must equal convolutions, and summed products
// their transposes.
#include <gtest/gtest.h>

#include "rbee/ops/conv.h"
#include "rbee/ops/matmul.h"
#include "rbee/ops/random.h"
#include "tests/support/op_table.h"
#include "tests/support/tolerance.h"

namespace rbee::harness {
namespace {

void expect_close(const Tensor& got, const Tensor& want) {
  const Tolerance allowed = tolerance(Family::product, DType::f32, DeviceKind::cpu);
  const Comparison result = compare_values(read_values(got), read_values(want), allowed);
  EXPECT_TRUE(result.ok) << result.first_failure;
}

Tensor values(const Shape& shape, Device& device, uint64_t seed) {
  return random_uniform(shape, DType::f32, device, {.seed = seed, .low = -1, .high = 1});
}

TEST(Im2col, ProductsAreConvolutions) {
  for (Device* device : all_devices()) {
    SCOPED_TRACE(cat(device->id()));
    const Tensor x = values({2, 3, 7, 8}, *device, 1), weight = values({4, 3, 3, 2}, *device, 2);
    const Tensor rows = im2col(x, {.kernel_h = 3, .kernel_w = 2, .stride_w = 2, .padding_h = 1});
    const Tensor want = conv2d(x, weight, {}, {.stride_w = 2, .padding_h = 1});
    const Tensor products = matmul(rows, weight.reshape({4, 18}).transpose(Axis{0}, Axis{1}));
    expect_close(products.transpose(Axis{1}, Axis{2}), want.reshape({2, 4, 28}));
  }
}

TEST(Im2col, ProductsAreConvolutionsOfALength) {
  for (Device* device : all_devices()) {
    SCOPED_TRACE(cat(device->id()));
    const Tensor x = values({2, 3, 17}, *device, 1), weight = values({4, 3, 5}, *device, 2);
    const Tensor rows = im2col1d(x, {.kernel = 5, .stride = 2, .padding = 3, .dilation = 2});
    const Tensor want = conv1d(x, weight, {}, {.stride = 2, .padding = 3, .dilation = 2});
    const Tensor products = matmul(rows, weight.reshape({4, 15}).transpose(Axis{0}, Axis{1}));
    expect_close(products.transpose(Axis{1}, Axis{2}), want);
  }
}

TEST(Col2im, ProductsAreTransposedConvolutions) {
  for (Device* device : all_devices()) {
    SCOPED_TRACE(cat(device->id()));
    const Tensor x = values({2, 3, 9}, *device, 1), weight = values({3, 4, 5}, *device, 2);
    const Tensor products = matmul(x.transpose(Axis{1}, Axis{2}), weight.reshape({3, 20}));
    expect_close(col2im1d(products.reshape({2, 9, 4, 5}), 2),
                 conv_transpose1d(x, weight, {}, {.stride = 2}));
  }
}

}  // namespace
}  // namespace rbee::harness
