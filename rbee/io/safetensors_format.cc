#include "rbee/io/safetensors_format.h"

namespace rbee::io {
namespace {

struct NamedType {
  std::string_view name;
  DType dtype;
};

// The first name of a type is the one that is written.
constexpr NamedType kTypes[] = {
    {"F64", DType::f64},        {"F32", DType::f32}, {"F16", DType::f16},
    {"BF16", DType::bf16},      {"I64", DType::i64}, {"I32", DType::i32},
    {"I16", DType::i16},        {"U32", DType::u32}, {"U8", DType::u8},
    {"F8_E4M3", DType::f8e4m3}, {"BOOL", DType::u8}, {kSafetensorsE5m2, DType::u8},
};

}  // namespace

std::optional<DType> dtype_of_safetensors(std::string_view name) {
  for (const NamedType& each : kTypes) {
    if (each.name == name) return each.dtype;
  }
  return std::nullopt;
}

std::optional<std::string_view> safetensors_type_of(DType dtype) {
  for (const NamedType& each : kTypes) {
    if (each.dtype == dtype) return each.name;
  }
  return std::nullopt;
}

std::string safetensors_type_names() {
  std::string names;
  for (const NamedType& each : kTypes) {
    if (!names.empty()) names += ", ";
    names += each.name;
  }
  return names;
}

}  // namespace rbee::io
