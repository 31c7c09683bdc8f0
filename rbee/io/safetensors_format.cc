#include "rbee/io/safetensors_format.h"

namespace rbee::io {
namespace {

// Names of types that are read as bytes.
constexpr std::string_view kReadAsU8[] = {"BOOL", kSafetensorsE5m2};

}  // namespace

std::optional<DType> dtype_of_safetensors(std::string_view name) {
  for (const DType dtype : kAllDTypes) {
    if (safetensors_type_of(dtype) == name) return dtype;
  }
  for (const std::string_view each : kReadAsU8) {
    if (each == name) return DType::u8;
  }
  return std::nullopt;
}

std::optional<std::string_view> safetensors_type_of(DType dtype) {
  if (is_quantized(dtype)) return std::nullopt;
  return info(dtype).file_name;
}

std::string safetensors_type_names() {
  std::string names;
  const auto add = [&](std::string_view name) {
    if (!names.empty()) names += ", ";
    names += name;
  };
  for (const DType dtype : kAllDTypes) {
    if (const auto name = safetensors_type_of(dtype)) add(*name);
  }
  for (const std::string_view name : kReadAsU8) add(name);
  return names;
}

}  // namespace rbee::io
