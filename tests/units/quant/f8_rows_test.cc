// Published forms of FP8 as groups of 128: the value of an element in each.
#include "rbee/quant/f8_rows.h"

#include <gtest/gtest.h>

#include <cmath>

#include "rbee/core/error.h"
#include "rbee/core/half.h"
#include "rbee/quant/quant.h"

namespace rbee::quant {
namespace {

constexpr int64_t kRows = 5, kIn = 384;

// Every code but NaN.
std::vector<std::byte> codes() {
  std::vector<std::byte> out;
  for (int64_t i = 0; i < kRows * kIn; ++i) {
    const auto code = static_cast<uint8_t>(i * 7 + i / 384);
    out.push_back(static_cast<std::byte>((code & 0x7f) == 0x7f ? 0 : code));
  }
  return out;
}

std::vector<float> values_of(const F8Rows& rows) {
  const std::vector<std::byte> blocks = f8_blocks(rows);
  EXPECT_EQ(static_cast<int64_t>(blocks.size()), rows.rows * row_bytes(DType::f8_g128, rows.in));
  std::vector<float> values(static_cast<size_t>(rows.rows * rows.in));
  dequantize_row(DType::f8_g128, blocks.data(), values.data(), rows.rows * rows.in);
  return values;
}

// scale(row, column): for the whole matrix; the codes are its rows from first_row on.
template <typename Scale>
void expect_values(const F8Rows& rows, const Scale& scale) {
  const std::vector<float> values = values_of(rows);
  for (int64_t row = 0; row < rows.rows; ++row) {
    for (int64_t column = 0; column < rows.in; ++column) {
      const auto at = static_cast<size_t>(row * rows.in + column);
      const float code = to_float(f8e4m3{std::to_integer<uint8_t>(rows.codes[at])});
      EXPECT_EQ(values[at], scale(rows.first_row + row, column) * code) << row << ", " << column;
    }
  }
}

TEST(F8RowsTest, OneScaleOrOneForEachRow) {
  const std::vector<std::byte> codes = quant::codes();
  const float one[] = {0.3f};
  expect_values({.codes = codes,
                 .rows = kRows,
                 .in = kIn,
                 .scales = one,
                 .scale_rows = 7,
                 .scale_columns = kIn,
                 .first_row = 2},
                [&](int64_t, int64_t) { return one[0]; });
  const float each[] = {9, 9, 0.3f, 7.0f, 0.01f, 1e-4f, 2.5f};
  expect_values({.codes = codes,
                 .rows = kRows,
                 .in = kIn,
                 .scales = each,
                 .scale_rows = 1,
                 .scale_columns = kIn,
                 .first_row = 2},
                [&](int64_t row, int64_t) { return each[row]; });
}

// Blocks of 128 columns, blocks of 256 with the last one cut, and rows that begin inside one.
TEST(F8RowsTest, Blocks) {
  const std::vector<std::byte> codes = quant::codes();
  for (const int64_t columns : {128, 256}) {
    const int64_t across = (kIn + columns - 1) / columns;
    std::vector<float> scales;
    for (int64_t i = 0; i < 4 * across; ++i) scales.push_back(0.1f + static_cast<float>(i));
    expect_values({.codes = codes,
                   .rows = kRows,
                   .in = kIn,
                   .scales = scales,
                   .scale_rows = 2,
                   .scale_columns = columns,
                   .first_row = 3},
                  [&](int64_t row, int64_t column) {
                    return scales[static_cast<size_t>(row / 2 * across + column / columns)];
                  });
  }
}

TEST(F8RowsTest, ANaNMakesItsGroupNaN) {
  std::vector<std::byte> codes = quant::codes();
  codes[kIn + 200] = std::byte{0xff};
  const float scale[] = {0.3f};
  const std::vector<float> values = values_of({.codes = codes,
                                               .rows = kRows,
                                               .in = kIn,
                                               .scales = scale,
                                               .scale_rows = kRows,
                                               .scale_columns = kIn});
  for (int64_t i = 0; i < kRows * kIn; ++i) {
    const bool group = i >= kIn + 128 && i < kIn + 256;
    EXPECT_EQ(std::isnan(values[static_cast<size_t>(i)]), group) << i;
  }
}

TEST(F8RowsTest, GroupsWithoutAScaleOfTheirOwnDoNotFit) {
  const std::vector<float> scales(64, 1.0f);
  const std::vector<std::byte> codes(4 * 192);
  for (const auto& [in, columns] : {std::pair<int64_t, int64_t>{192, 192}, {384, 64}, {256, 192}}) {
    const F8Rows rows{
        .codes = codes, .rows = 2, .in = in, .scales = scales, .scale_columns = columns};
    EXPECT_FALSE(fits_f8_blocks(rows)) << in << ", " << columns;
    EXPECT_THROW(f8_blocks(rows), Error);
  }
  EXPECT_TRUE(fits_f8_blocks({.rows = 2, .in = 128, .scale_columns = 300}));
}

}  // namespace
}  // namespace rbee::quant
