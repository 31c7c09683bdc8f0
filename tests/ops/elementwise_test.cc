// What rbee/ops adds to the kernels (broadcasting, views, results that share memory), and edge
// cases of integers, which formulas in double do not show.
#include "rbee/ops/elementwise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "rbee/ops/reduce.h"
#include "rbee/ops/sort.h"
#include "tests/support/op_table.h"

namespace rbee::harness {
namespace {

using ::testing::ElementsAre;

constexpr int32_t kMin32 = std::numeric_limits<int32_t>::min();
constexpr int32_t kMax32 = std::numeric_limits<int32_t>::max();
constexpr int64_t kMin64 = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax64 = std::numeric_limits<int64_t>::max();

template <typename T>
Tensor tensor(std::vector<T> values, const Shape& shape) {
  return from_host<T>(values, shape, *all_devices().front());
}
template <typename T>
Tensor vector(std::vector<T> values) {
  const auto count = static_cast<int64_t>(values.size());
  return tensor(std::move(values), {count});
}

TEST(Integers, ArithmeticWrapsAround) {
  const Tensor a = vector<int32_t>({kMax32, kMin32, 7, -7});
  const Tensor b = vector<int32_t>({1, -1, 0, 2});
  EXPECT_THAT((a + b).to_host<int32_t>(), ElementsAre(kMin32, kMax32, 7, -5));
  EXPECT_THAT((a - b).to_host<int32_t>(), ElementsAre(kMax32 - 1, kMin32 + 1, 7, -9));
  EXPECT_THAT((a * b).to_host<int32_t>(), ElementsAre(kMax32, kMin32, 0, -14));
  EXPECT_THAT((a / b).to_host<int32_t>(), ElementsAre(kMax32, kMin32, 0, -3));
  const Tensor bytes = vector<uint8_t>({250, 3});
  EXPECT_THAT((bytes + bytes).to_host<uint8_t>(), ElementsAre(244, 6));
  EXPECT_THAT((bytes - vector<uint8_t>({251, 1})).to_host<uint8_t>(), ElementsAre(255, 2));
}

TEST(Integers, BigValuesStayExact) {
  const Tensor a = vector<int64_t>({kMax64, kMin64, (int64_t{1} << 53) + 1});
  const Tensor one = vector<int64_t>({1});
  EXPECT_THAT((a - one).to_host<int64_t>(), ElementsAre(kMax64 - 1, kMax64, int64_t{1} << 53));
  EXPECT_THAT(compare(CompareOp::eq, a, a - one).to_host<uint8_t>(), ElementsAre(0, 0, 0));
  EXPECT_THAT(binary(BinaryOp::maximum, a, a - one).to_host<int64_t>(),
              ElementsAre(kMax64, kMax64, (int64_t{1} << 53) + 1));
  EXPECT_THAT(reduce(ReduceOp::sum, a, Axis{0}).to_host<int64_t>(), ElementsAre(int64_t{1} << 53));
  EXPECT_THAT(reduce(ReduceOp::argmax, a, Axis{0}).to_host<uint32_t>(), ElementsAre(0));
  const Tensor close = vector<int64_t>({kMax64, kMax64 - 1, kMax64});
  EXPECT_THAT(argsort(close).to_host<uint32_t>(), ElementsAre(1, 0, 2));
}

TEST(Integers, UnaryWrapsAround) {
  const Tensor x = vector<int32_t>({kMin32, -3, 0, 5, 65537});
  EXPECT_THAT(unary(UnaryOp::abs, x).to_host<int32_t>(), ElementsAre(kMin32, 3, 0, 5, 65537));
  EXPECT_THAT(unary(UnaryOp::neg, x).to_host<int32_t>(), ElementsAre(kMin32, 3, 0, -5, -65537));
  EXPECT_THAT(unary(UnaryOp::sqr, x).to_host<int32_t>(), ElementsAre(0, 9, 0, 25, 131073));
  EXPECT_THAT(unary(UnaryOp::sign, x).to_host<int32_t>(), ElementsAre(-1, -1, 0, 1, 1));
  EXPECT_THAT(unary(UnaryOp::neg, vector<uint8_t>({0, 1})).to_host<uint8_t>(), ElementsAre(0, 255));
}

TEST(Integers, AffineTruncatesAndSaturates) {
  const Tensor x = vector<int16_t>({3, -3, 30000});
  EXPECT_THAT(affine(x, 1.5, 0).to_host<int16_t>(), ElementsAre(4, -4, 32767));
  EXPECT_THAT(affine(vector<uint8_t>({3, 200}), -1, 2).to_host<uint8_t>(), ElementsAre(0, 0));
}

TEST(Cast, FloatToIntegerSaturates) {
  const Tensor x = vector<float>({3e9f, -3e9f, 2.9f, -2.9f, NAN, INFINITY});
  EXPECT_THAT(cast(x, DType::i32).to_host<int32_t>(),
              ElementsAre(kMax32, kMin32, 2, -2, 0, kMax32));
  EXPECT_THAT(cast(x, DType::u8).to_host<uint8_t>(), ElementsAre(255, 0, 2, 0, 0, 255));
  EXPECT_THAT(cast(vector<double>({9.3e18, -9.3e18}), DType::i64).to_host<int64_t>(),
              ElementsAre(kMax64, kMin64));
  EXPECT_THAT(cast(vector<float>({4294967040.0f, 4294967296.0f}), DType::u32).to_host<uint32_t>(),
              ElementsAre(4294967040u, 4294967295u));
}

TEST(Cast, IntegerToIntegerKeepsTheLowBits) {
  const Tensor x = vector<int64_t>({-1, 256, kMax64});
  EXPECT_THAT(cast(x, DType::u8).to_host<uint8_t>(), ElementsAre(255, 0, 255));
  EXPECT_THAT(cast(x, DType::i32).to_host<int32_t>(), ElementsAre(-1, 256, -1));
  EXPECT_THAT(cast(vector<uint32_t>({4294967295u}), DType::i64).to_host<int64_t>(),
              ElementsAre(4294967295));
}

TEST(Cast, OfTheSameTypeShares) {
  const Tensor x = vector<float>({1, 2});
  EXPECT_EQ(cast(x, DType::f32).buffer(), x.buffer());
  EXPECT_NE(cast(x, DType::f64).buffer(), x.buffer());
}

TEST(Binary, Broadcasts) {
  const Tensor column = tensor<float>({1, 2, 3}, {3, 1});
  const Tensor row = vector<float>({10, 20});
  const Tensor sum = column + row;
  EXPECT_EQ(sum.shape(), (Shape{3, 2}));
  EXPECT_THAT(sum.to_host<float>(), ElementsAre(11, 21, 12, 22, 13, 23));
  EXPECT_THAT(compare(CompareOp::gt, column * row, row).to_host<uint8_t>(),
              ElementsAre(0, 0, 1, 1, 1, 1));
  EXPECT_THAT((column - tensor<float>({1}, {})).to_host<float>(), ElementsAre(0, 1, 2));
}

TEST(Where, BroadcastsAllThree) {
  const Tensor cond = tensor<int64_t>({int64_t{1} << 40, 0}, {2, 1});
  const Tensor a = vector<float>({1, 2}), b = tensor<float>({-1}, {});
  EXPECT_THAT(where(cond, a, b).to_host<float>(), ElementsAre(1, 2, -1, -1));
}

TEST(Copy, ContiguousSharesOrCopies) {
  const Tensor x = tensor<int32_t>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(contiguous(x).buffer(), x.buffer());
  const Tensor turned = contiguous(x.transpose(Axis{0}, Axis{1}));
  EXPECT_TRUE(turned.contiguous());
  EXPECT_THAT(turned.to_host<int32_t>(), ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST(Copy, WritesThroughViews) {
  Tensor x = tensor<float>({0, 0, 0, 0, 0, 0}, {2, 3});
  Tensor middle = x.slice(Axis{1}, 1, 1);
  copy_(middle, tensor<float>({7, 8}, {2, 1}));
  EXPECT_THAT(x.to_host<float>(), ElementsAre(0, 7, 0, 0, 8, 0));
  fill_(middle, -1.5);
  EXPECT_THAT(x.to_host<float>(), ElementsAre(0, -1.5, 0, 0, -1.5, 0));
  Tensor bytes = vector<uint8_t>({1, 2});
  fill_(bytes, 300.7);
  EXPECT_THAT(bytes.to_host<uint8_t>(), ElementsAre(255, 255));
}

TEST(Add, InPlaceThroughViews) {
  Tensor x = tensor<int32_t>({1, 2, 3, 4, 5, 6}, {2, 3});
  Tensor last = x.slice(Axis{1}, 2, 1);
  add_(last, tensor<int32_t>({10, -1}, {2, 1}));
  EXPECT_THAT(x.to_host<int32_t>(), ElementsAre(1, 2, 13, 4, 5, 5));
  add_(x, x);
  EXPECT_THAT(x.to_host<int32_t>(), ElementsAre(2, 4, 26, 8, 10, 10));
}

TEST(Copy, RowsOfTwoMatrices) {
  Tensor dst = vector<float>({0, 0, 0, 0, 0, 0, 0});
  const Tensor src = vector<float>({1, 2, 3, 4, 5});
  copy2d_(dst, src, 2, 2, 4, 3);
  EXPECT_THAT(dst.to_host<float>(), ElementsAre(1, 2, 0, 0, 4, 5, 0));
}

TEST(Reduce, SumsOfSmallFloatsDoNotStall) {
  // In f16 the sum would stop at 2048.
  const Tensor ones = cast(tensor<float>(std::vector<float>(4096, 1.0f), {4096}), DType::f16);
  EXPECT_EQ(to_float(reduce(ReduceOp::sum, ones, Axis{0}).to_host<f16>()[0]), 4096);
}

TEST(Reduce, OverNoAxisOfAnEmptyTensor) {
  const Tensor x = tensor<float>({}, {0, 3});
  EXPECT_EQ(reduce(ReduceOp::max, x, Axis{1}).shape(), (Shape{0, 1}));
  EXPECT_THAT(reduce(ReduceOp::sum, x, Axis{0}).to_host<float>(), ElementsAre(0, 0, 0));
}

}  // namespace
}  // namespace rbee::harness
