#pragma once
// Element types. Plain types have one element a block; block types store `block_size` elements in
// `block_bytes` bytes along the last axis (layouts: backends/shared/quant_blocks.h and
// code_book_blocks.h). They are ggml's, and f8_g128: e4m3 codes in groups of 128 with a scale in
// f32, which no file holds.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rbee/core/half.h"

namespace rbee {

enum class DType : uint8_t {
  u8,
  u32,
  i16,
  i32,
  i64,
  f16,
  bf16,
  f32,
  f64,
  f8e4m3,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  q8_k,
  iq4_nl,
  iq4_xs,
  mxfp4,
  f8_g128,
  iq1_s,
  iq1_m,
  iq2_xxs,
  iq2_xs,
  iq2_s,
  iq3_xxs,
  iq3_s,
  tq1_0,
  tq2_0,
  nvfp4,
};
inline constexpr int kDTypeCount = 35;

struct DTypeInfo {
  const char* name;     // lower case, e.g. "q4_k"
  int32_t block_size;   // elements in a block; 1 for plain types
  int32_t block_bytes;  // bytes of a block
};

const DTypeInfo& info(DType dtype);
inline const char* name(DType dtype) {
  return info(dtype).name;
}
inline bool is_quantized(DType dtype) {
  return dtype >= DType::q4_0;
}
// Block types that are read and never made.
inline bool is_read_only(DType dtype) {
  return dtype >= DType::iq1_s;
}
inline bool is_float(DType dtype) {
  return dtype >= DType::f16 && dtype <= DType::f8e4m3;
}
inline bool is_integer(DType dtype) {
  return dtype <= DType::i64;
}
// Reads a name in either case, e.g. "Q4_K" or "bf16"; nothing when it is not a type.
std::optional<DType> parse_dtype(std::string_view text);
// Bytes of `elements` in a row of this type; elements must be a multiple of the block size.
int64_t row_bytes(DType dtype, int64_t elements);
void append_to(std::string& out, DType dtype);

// The DType of a C++ storage type.
template <typename T>
inline constexpr DType kDTypeOf = DType{255};
template <>
inline constexpr DType kDTypeOf<uint8_t> = DType::u8;
template <>
inline constexpr DType kDTypeOf<uint32_t> = DType::u32;
template <>
inline constexpr DType kDTypeOf<int16_t> = DType::i16;
template <>
inline constexpr DType kDTypeOf<int32_t> = DType::i32;
template <>
inline constexpr DType kDTypeOf<int64_t> = DType::i64;
template <>
inline constexpr DType kDTypeOf<f16> = DType::f16;
template <>
inline constexpr DType kDTypeOf<bf16> = DType::bf16;
template <>
inline constexpr DType kDTypeOf<float> = DType::f32;
template <>
inline constexpr DType kDTypeOf<double> = DType::f64;
template <>
inline constexpr DType kDTypeOf<f8e4m3> = DType::f8e4m3;

}  // namespace rbee
