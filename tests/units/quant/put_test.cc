// put_* are the inverses of the accessors in backends/shared/quant_blocks.h: a stored value is read
// at its own place and at no other.

#include "rbee/quant/put.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "rbee/quant/codes.h"

namespace rbee::quant {
namespace {

// Stores low + (17 i + i / 7) mod count at every place i and reads all of it back.
template <class Block, class Read>
void check_quants(int low, int count, Read read) {
  Block block{};
  const auto value = [&](int i) { return low + (17 * i + i / 7) % count; };
  for (int i = 0; i < Block::kElements; ++i) put_quant(block, i, value(i));
  for (int i = 0; i < Block::kElements; ++i) ASSERT_EQ(read(block, i), value(i)) << "at " << i;
}

template <class Block>
void check_integers(int low, int high) {
  for (int start = low; start <= high; ++start) {
    check_quants<Block>(start, high - start + 1,
                        [](const Block& b, int i) { return quant_of(b, i); });
  }
}

TEST(PutTest, Quants) {
  check_integers<BlockQ4_0>(-8, 7);
  check_integers<BlockQ4_1>(0, 15);
  check_integers<BlockQ5_0>(-16, 15);
  check_integers<BlockQ5_1>(0, 31);
  check_integers<BlockQ2_K>(0, 3);
  check_integers<BlockQ3_K>(-4, 3);
  check_integers<BlockQ4_K>(0, 15);
  check_integers<BlockQ5_K>(0, 31);
  check_integers<BlockQ6_K>(-32, 31);
}

TEST(PutTest, Codes) {
  for (int code = 0; code < 16; ++code) {
    BlockIQ4_NL small{};
    BlockIQ4_XS large{};
    BlockMXFP4 float4{};
    put_quant(small, 5, code);
    put_quant(large, 200, code);
    put_quant(float4, 31, code);
    EXPECT_EQ(quant_of(small, 5), iq4_value(code));
    EXPECT_EQ(quant_of(large, 200), iq4_value(code));
    EXPECT_EQ(quant_of(float4, 31), e2m1_doubled(code));
  }
}

TEST(PutTest, Nvfp4Codes) {
  for (int code = 0; code < 16; ++code) {
    check_quants<BlockNVFP4>(code, 16 - code,
                             [](const BlockNVFP4& b, int i) { return nvfp4_code(b, i); });
  }
}

TEST(PutTest, Trits) {
  for (int seed = 0; seed < 9; ++seed) {
    int trits[BlockTQ1_0::kElements];
    for (int i = 0; i < BlockTQ1_0::kElements; ++i) trits[i] = (seed * i + i / 7 + seed) % 3 - 1;
    BlockTQ1_0 block{};
    put_trits(block, trits);
    for (int i = 0; i < BlockTQ1_0::kElements; ++i) ASSERT_EQ(quant_of(block, i), trits[i]) << i;
  }
}

constexpr u16 kOne = 0x3c00;  // 1 as a half

template <class Block>
void check_scales(int low, int high) {
  constexpr int kGroups = Block::kElements / Block::kGroup;
  const int count = high - low + 1;
  for (int start = 0; start < count; ++start) {
    Block block{};
    block.d = kOne;
    const auto value = [&](int group) { return low + (start + 23 * group) % count; };
    for (int group = 0; group < kGroups; ++group) put_scale(block, group, value(group));
    for (int group = 0; group < kGroups; ++group) {
      ASSERT_EQ(scale_of(block, group).d, static_cast<float>(value(group))) << "group " << group;
    }
  }
}

TEST(PutTest, Scales) {
  check_scales<BlockQ2_K>(0, 15);
  check_scales<BlockQ3_K>(-32, 31);
  check_scales<BlockQ4_K>(0, 63);
  check_scales<BlockQ5_K>(0, 63);
  check_scales<BlockQ6_K>(-128, 127);
  check_scales<BlockIQ4_XS>(-32, 31);
}

template <class Block>
void check_minima(int high) {
  constexpr int kGroups = Block::kElements / Block::kGroup;
  for (int start = 0; start <= high; ++start) {
    Block block{};
    block.d = kOne;
    block.dmin = kOne;
    const auto scale = [&](int group) { return (5 * start + group) % (high + 1); };
    const auto min = [&](int group) { return (start + 23 * group) % (high + 1); };
    for (int group = 0; group < kGroups; ++group) {
      put_scale(block, group, scale(group));
      put_min(block, group, min(group));
    }
    for (int group = 0; group < kGroups; ++group) {
      ASSERT_EQ(scale_of(block, group).d, static_cast<float>(scale(group))) << "group " << group;
      ASSERT_EQ(scale_of(block, group).m, static_cast<float>(-min(group))) << "group " << group;
    }
  }
}

TEST(PutTest, Minima) {
  check_minima<BlockQ2_K>(15);
  check_minima<BlockQ4_K>(63);
  check_minima<BlockQ5_K>(63);
}

TEST(CodesTest, IntegersRoundToTheNearest) {
  const Lanes q = Integers<-4, 3>::nearest(Lanes{-1e9f, -1.4f, 0.6f, 1e9f});
  EXPECT_EQ(q[0], -4);
  EXPECT_EQ(q[1], -1);
  EXPECT_EQ(q[2], 1);
  EXPECT_EQ(q[3], 3);
}

TEST(CodesTest, Iq4RoundsToTheNearest) {
  for (int step = -1400; step <= 1300; ++step) {
    const float t = 0.1f * static_cast<float>(step);
    float least = 1e9f;
    for (int code = 0; code < 16; ++code) {
      least = std::min(least, std::abs(static_cast<float>(iq4_value(code)) - t));
    }
    const float nearest = Iq4Codes::nearest(splat(t))[0];
    EXPECT_NEAR(std::abs(nearest - t), least, 1e-4f) << t;
    EXPECT_EQ(static_cast<float>(iq4_value(Iq4Codes::stored(nearest))), nearest) << t;
  }
}

}  // namespace
}  // namespace rbee::quant
