// Rows of small integers with scales, as blocks: the value of each element.
#include "rbee/quant/integer_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "rbee/core/error.h"
#include "rbee/core/half.h"
#include "rbee/quant/quant.h"

namespace rbee::quant {
namespace {

constexpr int64_t kCount = 3, kIn = 128, kGroups = 2;
constexpr int32_t kGroupOfBlock[] = {0, 1, 1, 0};

class IntegerRowsTest : public testing::Test {
 protected:
  // Every code, and scales that are f16 numbers with full mantissas.
  IntegerRows rows(int bits, bool symmetric) {
    codes_.clear(), scales_.clear(), zeros_.clear();
    for (int64_t i = 0; i < kCount * kIn; ++i) {
      codes_.push_back(static_cast<uint8_t>((i * 3 + i / kIn) & ((1 << bits) - 1)));
    }
    for (int64_t i = 0; i < kCount * kGroups; ++i) {
      scales_.push_back(0x1p-16f * static_cast<float>(1025 + 170 * i));
      zeros_.push_back(static_cast<uint16_t>(symmetric ? 1 << (bits - 1) : 3 * i + 1));
    }
    return {.codes = codes_,
            .rows = kCount,
            .in = kIn,
            .bits = bits,
            .scales = scales_,
            .zeros = zeros_,
            .groups = kGroups,
            .group_of_block = kGroupOfBlock};
  }

  // expect(decoded, exact, zero * scale) for each element.
  template <typename Expect>
  static void decode(DType dtype, const IntegerRows& rows, const Expect& expect) {
    std::vector<std::byte> blocks(static_cast<size_t>(kCount * row_bytes(dtype, kIn)));
    integer_blocks(dtype, rows, blocks.data());
    std::vector<float> values(static_cast<size_t>(kCount * kIn));
    dequantize_row(dtype, blocks.data(), values.data(), kCount * kIn);
    for (int64_t i = 0; i < kCount * kIn; ++i) {
      SCOPED_TRACE(i);
      const int64_t block = i % kIn / 32;
      const auto group = static_cast<size_t>(i / kIn * kGroups + kGroupOfBlock[block]);
      const float scale = rows.scales[group];
      const int zero = rows.zeros[group];
      const auto at = static_cast<size_t>(i);
      expect(values[at], static_cast<float>(rows.codes[at] - zero) * scale,
             static_cast<float>(zero) * scale);
    }
  }

 private:
  std::vector<uint8_t> codes_;
  std::vector<float> scales_;
  std::vector<uint16_t> zeros_;
};

TEST_F(IntegerRowsTest, SymmetricOnesAreExact) {
  const auto same = [](float decoded, float exact, float) { EXPECT_EQ(decoded, exact); };
  for (const int bits : {2, 3, 4}) decode(DType::q4_0, rows(bits, true), same);
  decode(DType::q8_0, rows(8, true), same);
}

// The middle code times a scale is a power of two times the scale.
TEST_F(IntegerRowsTest, MiddlesAreExactAsOffsetsToo) {
  for (const int bits : {2, 3, 4}) {
    decode(DType::q4_1, rows(bits, true),
           [](float decoded, float exact, float) { EXPECT_EQ(decoded, exact); });
  }
}

// The product of zero and scale is rounded to f16, with a relative step of 2^-10.
TEST_F(IntegerRowsTest, OffsetsAreRounded) {
  for (const int bits : {2, 3, 4}) {
    float largest = 0;
    decode(DType::q4_1, rows(bits, false), [&](float decoded, float exact, float offset) {
      EXPECT_NEAR(decoded, exact, offset * 0x1p-11f);
      largest = std::max(largest, std::fabs(decoded - exact));
    });
    EXPECT_GT(largest, 0);
  }
}

TEST_F(IntegerRowsTest, Refused) {
  std::byte to[16];
  EXPECT_THROW(integer_blocks(DType::q4_0, rows(8, true), to), Error);
  EXPECT_THROW(integer_blocks(DType::q8_0, rows(4, true), to), Error);
  EXPECT_THROW(integer_blocks(DType::q5_0, rows(4, true), to), Error);
  IntegerRows cut = rows(4, true);
  cut.in = 48;
  EXPECT_THROW(integer_blocks(DType::q4_0, cut, to), Error);
}

}  // namespace
}  // namespace rbee::quant
