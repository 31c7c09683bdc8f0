#include "rbee/core/shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rbee/core/axis.h"
#include "rbee/core/error.h"

namespace rbee {
namespace {

using ::testing::HasSubstr;

// The message of the invalid_argument error that `body` throws.
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

constexpr int64_t kHuge = int64_t{1} << 62;

TEST(Shape, HoldsUpToMaxRank) {
  Shape shape;
  EXPECT_EQ(shape.rank(), 0);
  for (int i = 0; i < kMaxRank; ++i) shape.push_back(i + 1);
  EXPECT_EQ(cat(shape), "1, 2, 3, 4, 5");
  EXPECT_EQ(shape, (Shape{1, 2, 3, 4, 5}));
  EXPECT_THAT(message_of([&] { shape.push_back(1); }), HasSubstr("rank 6 is above 5"));
  EXPECT_THAT(message_of([] { Shape{1, 1, 1, 1, 1, 1}; }), HasSubstr("rank 6 is above 5"));
}

TEST(Shape, EqualityNeedsTheSameRank) {
  EXPECT_FALSE((Shape{2, 3} == Shape{2, 3, 1}));
  EXPECT_FALSE((Shape{2, 3} == Shape{3, 2}));
  EXPECT_TRUE(Shape{} == Shape{});
}

TEST(Shape, NumelMultiplies) {
  EXPECT_EQ(numel({}), 1);
  EXPECT_EQ(numel({2, 3, 4}), 24);
  EXPECT_EQ(numel({2, 0, 4}), 0);
}

TEST(Shape, NumelRefusesWhatDoesNotFit) {
  EXPECT_THAT(message_of([] { numel({2, -3}); }), HasSubstr("size -3 in (2, -3)"));
  EXPECT_THAT(message_of([] { numel({kHuge, 2}); }), HasSubstr("4611686018427387904, 2"));
  EXPECT_EQ(numel({kHuge, 1}), kHuge);
  // A size of zero must not hide sizes whose strides overflow.
  EXPECT_THAT(message_of([] { numel({0, kHuge, kHuge}); }), HasSubstr("more elements"));
}

TEST(Shape, ContiguousStrides) {
  EXPECT_EQ(contiguous_strides({2, 3, 4}), (Strides{12, 4, 1}));
  EXPECT_EQ(contiguous_strides({}), Strides{});
  EXPECT_EQ(contiguous_strides({2, 0, 3}), (Strides{3, 3, 1})) << "a size of 0 counts as 1";
}

TEST(Shape, BroadcastFollowsNumPy) {
  EXPECT_EQ(broadcast_shapes({2, 3}, {2, 3}, "op"), (Shape{2, 3}));
  EXPECT_EQ(broadcast_shapes({5, 1, 3}, {4, 1}, "op"), (Shape{5, 4, 3}));
  EXPECT_EQ(broadcast_shapes({}, {2, 3}, "op"), (Shape{2, 3}));
  EXPECT_EQ(broadcast_shapes({1, 3}, {0, 3}, "op"), (Shape{0, 3}));
  EXPECT_THAT(message_of([] { broadcast_shapes({2, 3}, {4, 2}, "where"); }),
              ::testing::StrEq("where: shapes (2, 3) and (4, 2) do not broadcast"));
  EXPECT_THAT(message_of([] { broadcast_shapes({0, 3}, {2, 3}, "where"); }),
              HasSubstr("do not broadcast"));
}

TEST(Axis, ResolvesFromBothEnds) {
  EXPECT_EQ(Axis{1}.resolve(3), 1);
  EXPECT_EQ(Axis{-1}.resolve(3), 2);
  EXPECT_EQ(Axis{-3}.resolve(3), 0);
  EXPECT_EQ(Axis{3}.resolve(3), -1);
  EXPECT_EQ(Axis{-4}.resolve(3), -1);
  EXPECT_EQ(Axis{0}.resolve(0), -1);
}

}  // namespace
}  // namespace rbee
