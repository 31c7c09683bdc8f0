// Converts rows from one type to another.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "rbee/core/error.h"
#include "rbee/io/checkpoint.h"
#include "tests/checkpoints/integer_folder.h"
#include "tests/units/quantize/scratch.h"
#include "tools/convert/tensor_rows.h"
#include "tools/convert/type_plan.h"

namespace rbee::tools {
namespace {

std::vector<float> wave(int64_t n) {
  std::vector<float> out;
  out.reserve(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) out.push_back(std::sin(static_cast<float>(i) * 0.37f));
  return out;
}

SourceTensor entry(const std::vector<float>& values, const Shape& shape, RowEdit edit = {}) {
  SourceTensor tensor;
  tensor.stored.name = "t";
  tensor.stored.dtype = DType::f32;
  tensor.stored.shape = shape;
  tensor.stored.data = std::as_bytes(std::span(values));
  tensor.edit = edit;
  return tensor;
}

std::vector<std::byte> convert(const SourceTensor& tensor, DType to, int threads) {
  std::vector<std::byte> out;
  convert_rows(tensor, {.to = to, .threads = threads}, [&](std::span<const std::byte> rows) {
    out.insert(out.end(), rows.begin(), rows.end());
  });
  return out;
}

std::vector<DType> targets() {
  std::vector<DType> out;
  for (const DType dtype : kAllDTypes) {
    if (can_convert_to(dtype)) out.push_back(dtype);
  }
  return out;
}

TEST(RowsTest, EveryTargetComesBackClose) {
  EXPECT_EQ(targets().size(), 28u);
  const std::vector<float> values = wave(4 * 512);
  for (const DType dtype : targets()) {
    const std::vector<std::byte> bytes = convert(entry(values, {4, 512}), dtype, 1);
    ASSERT_EQ(bytes.size(), static_cast<size_t>(4 * row_bytes(dtype, 512))) << name(dtype);
    std::vector<float> back(values.size());
    for (int64_t row = 0; row < 4; ++row) {
      row_to_float(dtype, bytes.data() + row * row_bytes(dtype, 512), back.data() + row * 512, 512);
    }
    double error = 0, power = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      error += std::pow(values[i] - back[i], 2);
      power += std::pow(values[i], 2);
    }
    const double bits = 8.0 * info(dtype).block_bytes / info(dtype).block_size;
    EXPECT_LT(std::sqrt(error / power), bits < 2.6 ? 0.6 : bits < 3.3 ? 0.35 : 0.2) << name(dtype);
  }
}

// Upper halves of f16 numbers, which files call F8_E5M2, and a scale.
TEST(RowsTest, FloatsOfOneByteWithTwoBitsOfMantissa) {
  const std::vector<uint8_t> bytes{0x00, 0x3c, 0xbe, 0x7b, 0x01, 0x44};
  SourceTensor tensor;
  tensor.stored.name = "t";
  tensor.stored.dtype = DType::u8;
  tensor.stored.is_e5m2 = true;
  tensor.stored.scale = 0.5f;
  tensor.stored.shape = {2, 3};
  tensor.stored.data = std::as_bytes(std::span(bytes));
  const std::vector<std::byte> out = convert(tensor, DType::f32, 1);
  std::vector<float> values(6);
  ASSERT_EQ(out.size(), values.size() * sizeof(float));
  std::memcpy(values.data(), out.data(), out.size());
  EXPECT_EQ(values, (std::vector<float>{0, 0.5f, -0.75f, 28672, 0x1p-17f, 2}));
  const Recipe& recipe = find_recipe("f16");
  EXPECT_EQ(plan_types(std::span(&tensor, 1), {.recipe = recipe, .gqa = 1})[0].to, DType::f16);
}

TEST(RowsTest, ThreadsDoNotMatter) {
  const std::vector<float> values = wave(37 * 256);
  for (const DType dtype : {DType::q4_k, DType::bf16}) {
    const auto one = convert(entry(values, {37, 256}), dtype, 1);
    EXPECT_EQ(convert(entry(values, {37, 256}), dtype, 4), one);
    EXPECT_EQ(convert(entry(values, {37, 256}), dtype, 100), one);
  }
}

// More rows than one conversion step.
TEST(RowsTest, ManyRows) {
  const int64_t rows = 35000;
  const std::vector<float> values = wave(rows * 256);
  const auto bytes = convert(entry(values, {rows, 256}), DType::f16, 2);
  ASSERT_EQ(bytes.size(), values.size() * 2);
  float last = 0;
  row_to_float(DType::f16, bytes.data() + bytes.size() - 2, &last, 1);
  EXPECT_NEAR(last, values.back(), 1e-3);
}

TEST(RowsTest, TheSameTypeIsPassedThrough) {
  const std::vector<float> values = {1, std::numeric_limits<float>::infinity()};
  const SourceTensor tensor = entry(values, {2});
  convert_rows(tensor, {.to = DType::f32}, [&](std::span<const std::byte> rows) {
    EXPECT_EQ(rows.data(), tensor.stored.data.data());
    EXPECT_EQ(rows.size(), tensor.stored.data.size());
  });
}

std::vector<float> edited(const std::vector<float>& values, const Shape& shape, RowEdit edit) {
  const auto bytes = convert(entry(values, shape, edit), DType::f32, 2);
  std::vector<float> out(bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

// Two heads of four: rows 0 and 2, 1 and 3 of each become neighbours.
TEST(RowsTest, HeadsInPairs) {
  using testing::ElementsAre;
  const RowEdit pairs{.pair_heads = 2};
  const std::vector<float> values = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_THAT(edited(values, {8, 1}, pairs), ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
  EXPECT_THAT(edited(values, {8}, pairs), ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
  EXPECT_THAT(edited(values, {4, 2}, {.pair_heads = 1}), ElementsAre(0, 1, 4, 5, 2, 3, 6, 7));
  EXPECT_THROW(edited(values, {2, 4}, pairs), Error);
}

TEST(RowsTest, ValuesMovedAndScaled) {
  EXPECT_THAT(edited({0, -2, 0.5f}, {3}, {.offset = 1, .scale = 4}),
              testing::ElementsAre(4, -4, 6));
}

TEST(RowsTest, Stops) {
  const std::vector<float> values = wave(4 * 256);
  const std::atomic<bool> stop = true;
  for (const DType to : {DType::f32, DType::q4_k}) {
    try {
      convert_rows(entry(values, {4, 256}), {.to = to, .stop = &stop}, [](auto) {});
      ADD_FAILURE() << "went on with " << name(to);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::cancelled);
    }
  }
}

TEST(RowsTest, NoElements) {
  EXPECT_TRUE(convert(entry({}, {0, 32}), DType::q4_0, 2).empty());
  EXPECT_TRUE(convert(entry({}, {3, 0}), DType::f16, 2).empty());
  const std::vector<float> one = {0.5f};
  EXPECT_EQ(convert(entry(one, {}), DType::f16, 2).size(), 2u);
}

TEST(RowsTest, ValuesThatDoNotFit) {
  const auto expect = [](float value, DType to) {
    std::vector<float> values = wave(3 * 32);
    values[40] = value;
    try {
      convert(entry(values, {3, 32}), to, 2);
      ADD_FAILURE() << value << " became " << name(to);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      EXPECT_THAT(error.what(), testing::HasSubstr("tensor t"));
      EXPECT_THAT(error.what(), testing::HasSubstr("row 1, column 8"));
    }
  };
  expect(std::numeric_limits<float>::quiet_NaN(), DType::q4_0);
  expect(-std::numeric_limits<float>::infinity(), DType::bf16);
  expect(65520, DType::f16);
  expect(-1e6f, DType::q8_0);
  std::vector<float> largest(32, 65504);
  EXPECT_NO_THROW(convert(entry(largest, {1, 32}), DType::f16, 1));
  EXPECT_NO_THROW(convert(entry(largest, {1, 32}), DType::q4_0, 1));
}

class IntegerRowsTest : public Scratch {};

// Packed integers become blocks with the same numbers, also if rows are permuted, and floats.
TEST_F(IntegerRowsTest, KeepTheirNumbers) {
  const test::PlainIntegers matrix{.rows = 32, .in = 64, .symmetric = true};
  write_raw_folder(scratch(), integer_config(test::IntegerForm::gptq, matrix),
                   integer_tensors(test::IntegerForm::gptq, matrix, "a"));
  const io::Checkpoint checkpoint = io::Checkpoint::open(scratch());
  for (const int64_t heads : {0, 2}) {
    for (const DType to : {DType::q4_0, DType::f32}) {
      SourceTensor source;
      source.stored = checkpoint.require("a.weight");
      source.edit.pair_heads = heads;
      const std::vector<std::byte> bytes = convert(source, to, 2);
      ASSERT_EQ(static_cast<int64_t>(bytes.size()), matrix.rows * row_bytes(to, matrix.in));
      std::vector<float> values(static_cast<size_t>(matrix.rows * matrix.in));
      row_to_float(to, bytes.data(), values.data(), matrix.rows * matrix.in);
      for (int64_t row = 0; row < matrix.rows; ++row) {
        // Of a head's 16 rows, the first half goes to the even places.
        const int64_t from = heads == 0 ? row : row / 16 * 16 + row % 2 * 8 + row % 16 / 2;
        for (int64_t i = 0; i < matrix.in; ++i) {
          ASSERT_EQ(values[static_cast<size_t>(row * matrix.in + i)], matrix.value(from, i))
              << heads << " heads, " << row << ", " << i;
        }
      }
    }
  }
}

TEST(RowsTest, Sources) {
  const double wide[] = {0.5, -2};
  float out[2];
  row_to_float(DType::f64, reinterpret_cast<const std::byte*>(wide), out, 2);
  EXPECT_EQ(out[1], -2);
  const uint8_t small[] = {0x38, 0xb8};  // 1 and -1
  row_to_float(DType::f8e4m3, reinterpret_cast<const std::byte*>(small), out, 2);
  EXPECT_EQ(out[0], 1);
  EXPECT_EQ(out[1], -1);
  EXPECT_THROW(row_to_float(DType::i32, reinterpret_cast<const std::byte*>(wide), out, 2), Error);
  std::byte bytes[8];
  EXPECT_THROW(row_from_float(DType::i32, out, bytes, 2), Error);
  EXPECT_FALSE(can_convert_to(DType::i32));
}

}  // namespace
}  // namespace rbee::tools
