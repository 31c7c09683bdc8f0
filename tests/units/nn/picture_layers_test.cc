// Layers of image models against plain loops, and concat().

#include <gtest/gtest.h>

#include "rbee/nn/conv2d.h"
#include "rbee/nn/group_norm.h"
#include "rbee/ops/concat.h"
#include "tests/checkpoints/checkpoint_files.h"

namespace rbee::test {
namespace {

class PictureLayersTest : public CheckpointFiles {
 protected:
  static nn::WeightOptions options() { return {.device = &cpu_device(), .own_names = true}; }
};

StoredTensor stored(const char* name, const Shape& shape, uint32_t seed) {
  return {name, shape, random_values(static_cast<size_t>(numel(shape)), seed), DType::f32};
}

Tensor random_tensor(const Shape& shape, uint32_t seed) {
  const std::vector<float> values = random_values(static_cast<size_t>(numel(shape)), seed);
  return from_host<float>(values, shape, cpu_device());
}

TEST_F(PictureLayersTest, ConvolutionsKeepTheSizeUnlessTold) {
  constexpr int64_t kIn = 3, kOut = 5, kHeight = 4, kWidth = 6;
  const StoredTensor tensors[] = {stored("c.weight", {kOut, kIn, 3, 3}, 1),
                                  stored("c.bias", {kOut}, 2)};
  const io::Checkpoint checkpoint = safetensors(tensors);
  const nn::Conv2d conv(nn::WeightScope(checkpoint, options()) / "c", {.in = kIn, .out = kOut});
  const Tensor x = random_tensor({1, kHeight, kWidth, kIn}, 3);
  const Tensor y = conv(x);
  ASSERT_EQ(y.shape(), (Shape{1, kHeight, kWidth, kOut}));
  const float* w = tensors[0].values.data();
  for (int64_t row = 0; row < kHeight; ++row) {
    for (int64_t col = 0; col < kWidth; ++col) {
      float sum = tensors[1].values[4];
      for (int64_t tap = 0; tap < 9 * kIn; ++tap) {
        const int64_t c = tap / 9, r = row + tap % 9 / 3 - 1, k = col + tap % 3 - 1;
        if (r < 0 || r >= kHeight || k < 0 || k >= kWidth) continue;
        sum += w[4 * kIn * 9 + tap] * x.data<float>()[(r * kWidth + k) * kIn + c];
      }
      EXPECT_NEAR(y.data<float>()[(row * kWidth + col) * kOut + 4], sum, 1e-4);
    }
  }
  EXPECT_EQ(conv(x, {.stride = 2, .pad_bottom = 1, .pad_right = 1}).shape(),
            (Shape{1, 2, 3, kOut}));
}

TEST_F(PictureLayersTest, GroupNormNeedsEqualGroups) {
  const StoredTensor tensors[] = {stored("n.weight", {6}, 1), stored("n.bias", {6}, 2)};
  const io::Checkpoint checkpoint = safetensors(tensors);
  const nn::WeightScope scope = nn::WeightScope(checkpoint, options()) / "n";
  const nn::GroupNorm norm(scope, {.channels = 6, .groups = 2});
  EXPECT_EQ(norm(random_tensor({1, 2, 2, 6}, 3)).shape(), (Shape{1, 2, 2, 6}));
  expect_error(Code::invalid_argument, {"n.weight", "6 channels", "4 equal groups"},
               [&] { nn::GroupNorm(scope, {.channels = 6, .groups = 4}); });
}

TEST_F(PictureLayersTest, LinearLayersReadTheLastAxis) {
  const StoredTensor tensors[] = {stored("l.weight", {4, 3}, 1), stored("l.bias", {4}, 2)};
  const io::Checkpoint checkpoint = safetensors(tensors);
  const nn::Linear layer(nn::WeightScope(checkpoint, options()) / "l",
                         {.in = 3, .out = 4, .bias = nn::Bias::required});
  const Tensor x = random_tensor({2, 3, 5}, 3).transpose(Axis{1}, Axis{2});
  const Tensor y = layer.over_last(x);
  ASSERT_EQ(y.shape(), (Shape{2, 5, 4}));
  const std::vector<float> values = x.to_host<float>();
  float sum = tensors[1].values[2];
  for (size_t i = 0; i < 3; ++i) sum += tensors[0].values[6 + i] * values[7 * 3 + i];
  EXPECT_NEAR(y.to_host<float>()[7 * 4 + 2], sum, 1e-5);
}

TEST(Concat, JoinsStridedPartsAlongAnyAxis) {
  const Tensor a = random_tensor({2, 3}, 1), b = random_tensor({2, 2}, 2);
  const Tensor c = random_tensor({3, 2}, 3).transpose(Axis{0}, Axis{1});
  const Tensor y = concat({a, b, c}, Axis{-1});
  ASSERT_EQ(y.shape(), (Shape{2, 8}));
  EXPECT_EQ(y.slice(Axis{1}, 0, 3).to_host<float>(), a.to_host<float>());
  EXPECT_EQ(y.slice(Axis{1}, 3, 2).to_host<float>(), b.to_host<float>());
  EXPECT_EQ(y.slice(Axis{1}, 5, 3).to_host<float>(), c.to_host<float>());
  EXPECT_EQ(concat({a, c}, Axis{0}).shape(), (Shape{4, 3}));
  expect_error(Code::invalid_argument, {"concat", "another axis than 0"},
               [&] { concat({a, b}, Axis{0}); });
  expect_error(Code::invalid_argument, {"concat", "axis 2"}, [&] { concat({a, b}, Axis{2}); });
  expect_error(Code::invalid_argument, {"no parts"}, [] { concat({}, Axis{0}); });
  const Tensor half = empty({2, 3}, DType::f16, cpu_device());
  expect_error(Code::invalid_argument, {"f32 (2, 3)", "f16 (2, 3)"},
               [&] { concat({a, half}, Axis{0}); });
}

}  // namespace
}  // namespace rbee::test
