// Views: the elements that they show, and the arguments that they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "rbee/tensor/tensor.h"
#include "tests/units/tensor/fake_device.h"

namespace rbee {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Axis kFirst{0};
constexpr Axis kSecond{1};
constexpr Axis kLast{-1};

class ViewTest : public ::testing::Test {
 protected:
  // 0, 1, 2, ... in row-major order.
  Tensor counted(const Shape& shape) {
    std::vector<int32_t> values(static_cast<size_t>(numel(shape)));
    std::iota(values.begin(), values.end(), 0);
    return from_host<int32_t>(values, shape, cpu_);
  }

  template <typename Body>
  std::string message_of(Body&& body) {
    try {
      body();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      return error.what();
    }
    return "nothing was thrown";
  }

  test::FakeDevice cpu_{{DeviceKind::cpu, 0}, true};
};

TEST_F(ViewTest, DescribesItself) {
  const Tensor x = counted({2, 3});
  EXPECT_EQ(describe(x), "i32 (2, 3) on cpu:0");
  EXPECT_EQ(cat(x), describe(x));
  EXPECT_EQ(describe(Tensor{}), "undefined tensor");
  EXPECT_EQ(x.rank(), 2);
  EXPECT_EQ(x.numel(), 6);
  EXPECT_EQ(x.bytes(), 24);
  EXPECT_EQ(x.dim(-1), 3);
  EXPECT_EQ(x.strides(), (Strides{3, 1}));
  EXPECT_THAT(message_of([&] { x.dim(2); }), HasSubstr("axis 2 is outside of i32 (2, 3)"));
}

TEST_F(ViewTest, DimsUnpacksARank) {
  const auto [rows, columns] = counted({2, 3}).dims<2>();
  EXPECT_EQ(rows, 2);
  EXPECT_EQ(columns, 3);
  EXPECT_THAT(message_of([&] { counted({2, 3}).dims<3>(); }),
              AllOf(HasSubstr("(2, 3)"), HasSubstr("3 axes")));
}

TEST_F(ViewTest, ReshapeKeepsTheOrder) {
  const Tensor x = counted({2, 3}).reshape({3, 2});
  EXPECT_EQ(x.shape(), (Shape{3, 2}));
  EXPECT_THAT(x.to_host<int32_t>(), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(message_of([&] { counted({2, 3}).reshape({4, 2}); }),
              AllOf(HasSubstr("6 elements"), HasSubstr("(4, 2) has 8")));
  EXPECT_THAT(message_of([&] { counted({2, 3}).transpose(kFirst, kSecond).reshape({6}); }),
              HasSubstr("not contiguous"));
}

TEST_F(ViewTest, AnEmptyTensorReshapes) {
  const Tensor x = counted({4, 0, 3});
  EXPECT_TRUE(x.contiguous());
  EXPECT_EQ(x.reshape({0, 7}).shape(), (Shape{0, 7}));
  EXPECT_TRUE(x.transpose(kFirst, kSecond).contiguous()) << "there is nothing out of order";
  EXPECT_TRUE(x.to_host<int32_t>().empty());
}

TEST_F(ViewTest, SliceShowsAPart) {
  const Tensor x = counted({3, 4});
  EXPECT_THAT(x.slice(kLast, 1, 2).to_host<int32_t>(), ElementsAre(1, 2, 5, 6, 9, 10));
  EXPECT_THAT(x.slice(kFirst, 2, 1).to_host<int32_t>(), ElementsAre(8, 9, 10, 11));
  EXPECT_FALSE(x.slice(kLast, 1, 2).contiguous());
  EXPECT_TRUE(x.slice(kFirst, 1, 2).contiguous());
  EXPECT_EQ(x.slice(kFirst, 3, 0).numel(), 0);
  EXPECT_THAT(message_of([&] { x.slice(kLast, 3, 2); }),
              AllOf(HasSubstr("[3, 3 + 2)"), HasSubstr("axis 1 of i32 (3, 4)")));
  EXPECT_THAT(message_of([&] { x.slice(kLast, -1, 2); }), HasSubstr("outside"));
  EXPECT_THAT(message_of([&] { x.slice(kLast, 0, -1); }), HasSubstr("outside"));
  EXPECT_THAT(message_of([&] { x.slice(Axis{2}, 0, 1); }), HasSubstr("axis 2"));
}

TEST_F(ViewTest, SlicesOfSlicesAddUp) {
  const Tensor x = counted({4, 5}).slice(kFirst, 1, 3).slice(kLast, 2, 3).slice(kFirst, 1, 1);
  EXPECT_THAT(x.to_host<int32_t>(), ElementsAre(12, 13, 14));
}

TEST_F(ViewTest, TransposeAndPermuteReorderAxes) {
  const Tensor x = counted({2, 3});
  EXPECT_THAT(x.transpose(kFirst, kLast).to_host<int32_t>(), ElementsAre(0, 3, 1, 4, 2, 5));
  const Tensor y = counted({2, 3, 2}).permute({2, 0, 1});
  EXPECT_EQ(y.shape(), (Shape{2, 2, 3}));
  EXPECT_THAT(y.to_host<int32_t>(), ElementsAre(0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11));
  EXPECT_THAT(message_of([&] { x.permute({0}); }), HasSubstr("order of 1 axes"));
  EXPECT_THAT(message_of([&] { x.permute({0, 0}); }), HasSubstr("axis 0"));
  EXPECT_THAT(message_of([&] { x.permute({0, 2}); }), HasSubstr("axis 2"));
}

TEST_F(ViewTest, UnsqueezeAndSqueezeAreInverse) {
  const Tensor x = counted({2, 3});
  EXPECT_EQ(x.unsqueeze(kFirst).shape(), (Shape{1, 2, 3}));
  EXPECT_EQ(x.unsqueeze(kSecond).shape(), (Shape{2, 1, 3}));
  EXPECT_EQ(x.unsqueeze(kLast).shape(), (Shape{2, 3, 1})) << "counted from the new end";
  EXPECT_TRUE(x.unsqueeze(kSecond).contiguous());
  EXPECT_EQ(x.unsqueeze(kSecond).squeeze(kSecond).shape(), x.shape());
  EXPECT_THAT(message_of([&] { x.squeeze(kLast); }), HasSubstr("axis 1 of i32 (2, 3)"));
  EXPECT_THAT(message_of([&] { x.unsqueeze(Axis{3}); }), HasSubstr("axis 3"));
  EXPECT_THAT(message_of([&] { counted({1, 1, 1, 1, 1}).unsqueeze(kFirst); }), HasSubstr("5"));
}

TEST_F(ViewTest, TheLastAxisSplitsWhateverItsStrides) {
  const Tensor x = counted({2, 6}).slice(kLast, 2, 4).split_last(2);
  EXPECT_EQ(x.shape(), (Shape{2, 2, 2}));
  EXPECT_THAT(x.to_host<int32_t>(), ElementsAre(2, 3, 4, 5, 8, 9, 10, 11));
  EXPECT_EQ(cpu_.allocations, 1);
  EXPECT_THAT(counted({2, 3}).transpose(kFirst, kLast).split_last(2).to_host<int32_t>(),
              ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(message_of([&] { counted({2, 3}).split_last(2); }), HasSubstr("multiple of 2"));
  EXPECT_THAT(message_of([&] { counted({2, 3}).split_last(0); }), HasSubstr("multiple of 0"));
  EXPECT_THAT(message_of([&] { zeros({4, 64}, DType::q8_0, cpu_).split_last(2); }),
              HasSubstr("blocks"));
}

TEST_F(ViewTest, BroadcastRepeatsWithoutACopy) {
  const Tensor x = counted({2, 1}).broadcast_to({3, 2, 2});
  EXPECT_EQ(x.strides(), (Strides{0, 1, 0}));
  EXPECT_THAT(x.to_host<int32_t>(), ElementsAre(0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1));
  EXPECT_EQ(cpu_.allocations, 1);
  EXPECT_THAT(message_of([&] { counted({2, 3}).broadcast_to({2, 4}); }),
              AllOf(HasSubstr("(2, 3)"), HasSubstr("(2, 4)")));
  EXPECT_THAT(message_of([&] { counted({2, 3}).broadcast_to({3}); }),
              AllOf(HasSubstr("(2, 3)"), HasSubstr("(3)")));
}

TEST_F(ViewTest, BlockTypesMoveByWholeBlocks) {
  const Tensor x = zeros({4, 64}, DType::q8_0, cpu_);
  EXPECT_EQ(x.bytes(), 4 * 2 * 34);
  const auto* base = static_cast<const std::byte*>(x.view().data);
  EXPECT_EQ(x.slice(kFirst, 1, 2).view().data, base + 2 * 34);
  EXPECT_EQ(x.slice(kLast, 32, 32).view().data, base + 34);
  EXPECT_THAT(message_of([&] { x.slice(kLast, 16, 32); }), HasSubstr("block of q8_0"));
  EXPECT_THAT(message_of([&] { x.slice(kLast, 0, 16); }), HasSubstr("length 16"));
  EXPECT_THAT(message_of([&] { x.transpose(kFirst, kLast); }), HasSubstr("blocks"));
  EXPECT_THAT(message_of([&] { x.reshape({16, 16}); }), HasSubstr("block of 32"));
  EXPECT_EQ(x.reshape({8, 32}).shape(), (Shape{8, 32}));
}

TEST_F(ViewTest, ViewsShareTheirElements) {
  const Tensor x = counted({2, 3});
  x.slice(kLast, 1, 1).data<int32_t>()[0] = 40;
  EXPECT_THAT(x.to_host<int32_t>(), ElementsAre(0, 40, 2, 3, 4, 5));
}

}  // namespace
}  // namespace rbee
