#include "rbee/io/safetensors_format.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace rbee::io {
namespace {

// Names of types that are read as bytes.
constexpr std::string_view kReadAsU8[] = {"BOOL", kSafetensorsE5m2};

template <typename From, typename To, To (*convert)(From)>
std::shared_ptr<const std::vector<std::byte>> widen(std::span<const std::byte> data) {
  auto out = std::make_shared<std::vector<std::byte>>(data.size() / sizeof(From) * sizeof(To));
  for (size_t i = 0; i < data.size() / sizeof(From); ++i) {
    From from;
    std::memcpy(&from, &data[i * sizeof(From)], sizeof(From));  // may lie at any byte
    const To to = convert(from);
    std::memcpy(&(*out)[i * sizeof(To)], &to, sizeof(To));
  }
  return out;
}

template <typename From, typename To>
To same(From value) {
  return static_cast<To>(value);
}

// Graphcore's and AMD's floats of one byte (Noune et al. 2022): without infinities, with one NaN,
// and a bias of 2^(exponent bits - 1).
template <int kMantissa>
float fnuz(uint8_t byte) {
  constexpr int kBias = 1 << (6 - kMantissa);
  if (byte == 0x80) return std::numeric_limits<float>::quiet_NaN();
  const int exponent = (byte & 0x7F) >> kMantissa, mantissa = byte & ((1 << kMantissa) - 1);
  const int whole = exponent == 0 ? mantissa : mantissa + (1 << kMantissa);
  const float size =
      std::ldexp(static_cast<float>(whole), std::max(exponent, 1) - kBias - kMantissa);
  return byte >= 0x80 ? -size : size;
}

constexpr WidenedType kWidened[] = {
    {"I8", DType::u8, DType::i16, widen<int8_t, int16_t, same>},
    {"U16", DType::i16, DType::i32, widen<uint16_t, int32_t, same>},
    {"U64", DType::i64, DType::f64, widen<uint64_t, double, same>},
    {"F8_E4M3FNUZ", DType::u8, DType::f32, widen<uint8_t, float, fnuz<3>>},
    {"F8_E5M2FNUZ", DType::u8, DType::f32, widen<uint8_t, float, fnuz<2>>},
};

}  // namespace

const WidenedType* widened_type(std::string_view name) {
  const auto* const found = std::ranges::find(kWidened, name, &WidenedType::name);
  return found == std::end(kWidened) ? nullptr : found;
}

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
  for (const WidenedType& type : kWidened) add(type.name);
  return names;
}

}  // namespace rbee::io
