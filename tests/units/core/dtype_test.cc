#include "rbee/core/dtype.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "rbee/core/error.h"

namespace rbee {
namespace {

TEST(DType, NamesAreReadBackInEitherCase) {
  for (const DType dtype : kAllDTypes) {
    std::string text = name(dtype);
    EXPECT_EQ(cat(dtype), text);
    EXPECT_EQ(parse_dtype(text), dtype) << text;
    for (char& c : text) c = static_cast<char>(std::toupper(c));
    EXPECT_EQ(parse_dtype(text), dtype) << text;
  }
  EXPECT_FALSE(parse_dtype("").has_value());
  EXPECT_FALSE(parse_dtype("f33").has_value());
  EXPECT_FALSE(parse_dtype("f32 ").has_value());
}

TEST(DType, EachIsOneKind) {
  for (const DType dtype : kAllDTypes) {
    EXPECT_EQ(is_integer(dtype) + is_float(dtype) + is_quantized(dtype), 1) << name(dtype);
    EXPECT_EQ(info(dtype).block_size > 1, is_quantized(dtype)) << name(dtype);
  }
  EXPECT_TRUE(is_integer(DType::i64));
  EXPECT_TRUE(is_float(DType::f16));
  EXPECT_TRUE(is_float(DType::f8e4m3));
  EXPECT_TRUE(is_quantized(DType::mxfp4));
}

TEST(DType, OnlyBlockTypesHaveFewBits) {
  for (const DType dtype : kAllDTypes) {
    EXPECT_TRUE(is_quantized(dtype) || !has_few_bits(dtype)) << name(dtype);
  }
  EXPECT_FALSE(has_few_bits(DType::q4_k));
  EXPECT_FALSE(has_few_bits(DType::f8_g128));
  EXPECT_TRUE(has_few_bits(DType::iq1_s));
  EXPECT_TRUE(has_few_bits(DType::nvfp4));
}

TEST(DType, StorageTypesHaveTheSizeOfTheirDType) {
  EXPECT_EQ(info(kDTypeOf<uint8_t>).block_bytes, 1);
  EXPECT_EQ(info(kDTypeOf<int16_t>).block_bytes, 2);
  EXPECT_EQ(info(kDTypeOf<uint32_t>).block_bytes, 4);
  EXPECT_EQ(info(kDTypeOf<int32_t>).block_bytes, 4);
  EXPECT_EQ(info(kDTypeOf<int64_t>).block_bytes, 8);
  EXPECT_EQ(info(kDTypeOf<f16>).block_bytes, 2);
  EXPECT_EQ(info(kDTypeOf<bf16>).block_bytes, 2);
  EXPECT_EQ(info(kDTypeOf<float>).block_bytes, 4);
  EXPECT_EQ(info(kDTypeOf<double>).block_bytes, 8);
  EXPECT_EQ(info(kDTypeOf<f8e4m3>).block_bytes, 1);
}

TEST(DType, RowBytes) {
  EXPECT_EQ(row_bytes(DType::f32, 7), 28);
  EXPECT_EQ(row_bytes(DType::q4_0, 64), 36);
  EXPECT_EQ(row_bytes(DType::q6_k, 512), 420);
  EXPECT_EQ(row_bytes(DType::q4_k, 0), 0);
  EXPECT_THROW(row_bytes(DType::q4_0, 33), Error);
  EXPECT_THROW(row_bytes(DType::f32, -1), Error);
  EXPECT_THROW(row_bytes(DType::f64, std::numeric_limits<int64_t>::max() / 4), Error);
}

}  // namespace
}  // namespace rbee
