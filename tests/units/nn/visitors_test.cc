// When the host's weights come to the device.
#include "rbee/nn/visitors.h"

#include <gtest/gtest.h>

#include "tests/units/engine/far_device.h"

namespace rbee::nn {
namespace {

constexpr int64_t kMinBatch = 32, kDim = 64, kExperts = 16;
constexpr int64_t kMatrixBytes = kDim * kDim * 4;

class PoorHost final : public engine::FarDevice {
 public:
  MemoryInfo memory() const override { return {.total = 1 << 20, .free = kMatrixBytes - 1}; }
};

class VisitorsTest : public testing::Test {
 protected:
  static Tensor weight(const Shape& shape, Device& device) {
    return zeros(shape, DType::f32, device);
  }
  void add_matrix(Visitors& visitors) {
    const Shape shape{kDim, kDim};
    visitors.add({weight(shape, host_)}, shape, DType::f32);
  }

  cpu::CpuDevice host_;
  engine::FarDevice device_;
};

TEST_F(VisitorsTest, MatricesComeForAsManyRowsAsTheFlagSays) {
  Visitors visitors(device_, host_, DType::f32, kMinBatch);
  add_matrix(visitors);
  EXPECT_FALSE(visitors.come_for(1000)) << "they have no room yet";
  visitors.start();
  EXPECT_FALSE(visitors.come_for(kMinBatch - 1));
  EXPECT_TRUE(visitors.come_for(kMinBatch));
  EXPECT_EQ(visitors.bytes_for(kMinBatch - 1), 0);
  EXPECT_EQ(visitors.bytes_for(kMinBatch), kMatrixBytes);
}

TEST_F(VisitorsTest, ExpertsComeWhenEachGetsAQuarterOfThat) {
  Visitors visitors(device_, host_, DType::f32, kMinBatch);
  add_matrix(visitors);
  visitors.start();
  // Rows from which on they come.
  const auto rows = [&](int64_t chosen, int64_t experts) {
    int64_t out = 1;
    while (!visitors.come_for(out, chosen, experts)) ++out;
    return out;
  };
  EXPECT_EQ(rows(8, 128), 128);
  EXPECT_EQ(rows(1, 16), 128);
  EXPECT_EQ(rows(3, 16), 43);  // 43 * 3 >= 16 * 8
  // Never for fewer rows than matrices: half of all experts are chosen, and all.
  EXPECT_EQ(rows(2, 4), kMinBatch);
  EXPECT_EQ(rows(4, 4), kMinBatch);
}

TEST_F(VisitorsTest, AStepIsToldTheBytesThatComeForIt) {
  Visitors visitors(device_, host_, DType::f32, kMinBatch);
  add_matrix(visitors);
  const Shape stack{kExperts, kDim, kDim};
  visitors.add_experts({weight(stack, host_)}, stack, DType::f32, 2);
  visitors.start();
  EXPECT_EQ(visitors.bytes_for(kMinBatch - 1), 0);
  EXPECT_EQ(visitors.bytes_for(63), kMatrixBytes);  // 63 * 2 < 16 * 8
  EXPECT_EQ(visitors.bytes_for(64), kMatrixBytes * (1 + kExperts));
}

TEST_F(VisitorsTest, NothingComesWithoutRoom) {
  PoorHost poor;
  Visitors no_pages(device_, poor, DType::f32, kMinBatch);
  add_matrix(no_pages);
  no_pages.start();
  EXPECT_FALSE(no_pages.come_for(1000));
  EXPECT_EQ(no_pages.bytes_for(1000), 0);

  Visitors no_device_room(device_, host_, DType::f32, kMinBatch);
  add_matrix(no_device_room);
  device_.fail_allocation(1);
  no_device_room.start();
  EXPECT_FALSE(no_device_room.come_for(1000));
}

}  // namespace
}  // namespace rbee::nn
