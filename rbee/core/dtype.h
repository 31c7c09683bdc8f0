#pragma once
// Element types, one row each. A plain type has one element in a block; a block type stores
// `block_size` elements of the last axis in `block_bytes` bytes (layouts:
// backends/shared/quant_blocks.h and code_book_blocks.h).

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rbee/core/block_types.h"
#include "rbee/core/half.h"

// M(name, Type, kind, ggml, file_name): Type is the C++ storage type, the rest as in DTypeInfo.
#define RB_PLAIN_TYPES(M)                       \
  M(u8, uint8_t, integer, kNoGgmlType, "U8")    \
  M(u32, uint32_t, integer, kNoGgmlType, "U32") \
  M(i16, int16_t, integer, 25, "I16")           \
  M(i32, int32_t, integer, 26, "I32")           \
  M(i64, int64_t, integer, 27, "I64")           \
  M(f16, f16, floating, 1, "F16")               \
  M(bf16, bf16, floating, 30, "BF16")           \
  M(f32, float, floating, 0, "F32")             \
  M(f64, double, floating, 28, "F64")           \
  M(f8e4m3, f8e4m3, floating, kNoGgmlType, "F8_E4M3")

namespace rbee {

#define RB_NAME(name, ...) name,
enum class DType : uint8_t { RB_PLAIN_TYPES(RB_NAME) RB_BLOCK_TYPES(RB_NAME) };
#undef RB_NAME

enum class DTypeKind : uint8_t { integer, floating, block };
enum class DTypeBits : uint8_t { usual, few };
inline constexpr int32_t kNoGgmlType = -1;

struct DTypeInfo {
  const char* name;       // lower case, e.g. "q4_k"
  const char* file_name;  // in GGUF (ggml's name) and safetensors files, e.g. "Q4_K" or "F8_E4M3"
  DTypeKind kind;
  DTypeBits bits;
  int32_t block_size;   // elements in a block; 1 for plain types
  int32_t block_bytes;  // bytes of a block
  int32_t ggml_type;    // the number in GGUF files, or kNoGgmlType
};

#define RB_PLAIN_ROW(name, Type, kind, ggml, file_name) \
  DTypeInfo{#name, file_name, DTypeKind::kind, DTypeBits::usual, 1, int32_t{sizeof(Type)}, ggml},
#define RB_BLOCK_ROW(name, Name, elements, bytes, bits, ggml) \
  DTypeInfo{#name, #Name, DTypeKind::block, DTypeBits::bits, elements, bytes, ggml},
// By DType.
inline constexpr DTypeInfo kDTypeInfos[] = {RB_PLAIN_TYPES(RB_PLAIN_ROW)
                                                RB_BLOCK_TYPES(RB_BLOCK_ROW)};
#undef RB_PLAIN_ROW
#undef RB_BLOCK_ROW
inline constexpr int kDTypeCount = static_cast<int>(std::size(kDTypeInfos));

inline constexpr auto kAllDTypes = [] {
  std::array<DType, kDTypeCount> all{};
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<DType>(i);
  return all;
}();

constexpr const DTypeInfo& info(DType dtype) {
  return kDTypeInfos[static_cast<size_t>(dtype)];
}
constexpr const char* name(DType dtype) {
  return info(dtype).name;
}
constexpr bool is_quantized(DType dtype) {
  return info(dtype).kind == DTypeKind::block;
}
// Those of RB_FEW_BIT_BLOCK_TYPES.
constexpr bool has_few_bits(DType dtype) {
  return info(dtype).bits == DTypeBits::few;
}
constexpr bool is_float(DType dtype) {
  return info(dtype).kind == DTypeKind::floating;
}
constexpr bool is_integer(DType dtype) {
  return info(dtype).kind == DTypeKind::integer;
}
// Reads a name in either case, e.g. "Q4_K" or "bf16"; nothing if it is not a type.
std::optional<DType> parse_dtype(std::string_view text);
// Bytes of `elements` in a row of this type; elements must be a multiple of the block size.
int64_t row_bytes(DType dtype, int64_t elements);
void append_to(std::string& out, DType dtype);

// The DType of a C++ storage type.
template <typename T>
inline constexpr DType kDTypeOf = DType{255};
#define RB_DTYPE_OF(name, Type, ...) \
  template <>                        \
  inline constexpr DType kDTypeOf<Type> = DType::name;
RB_PLAIN_TYPES(RB_DTYPE_OF)
#undef RB_DTYPE_OF

}  // namespace rbee
