#include "rbee/io/gguf_format.h"

#include <bit>

namespace rbee::io {
namespace {

// ggml's types that are no DType. Numbers 4, 5, 31 to 33 and 36 to 38 were types that ggml took
// back.
struct OtherType {
  uint32_t number;
  std::string_view name;
};
constexpr OtherType kOthers[] = {
    {4, "Q4_2"},      {5, "Q4_3"},      {9, "Q8_1"},        {24, "I8"},         {31, "Q4_0_4_4"},
    {32, "Q4_0_4_8"}, {33, "Q4_0_8_8"}, {36, "IQ4_NL_4_4"}, {37, "IQ4_NL_4_8"}, {38, "IQ4_NL_8_8"},
};

}  // namespace

std::optional<DType> dtype_of_ggml(uint32_t type) {
  for (const DType dtype : kAllDTypes) {
    if (ggml_type_of(dtype) == type) return dtype;
  }
  return std::nullopt;
}

std::optional<uint32_t> ggml_type_of(DType dtype) {
  const int32_t number = info(dtype).ggml_type;
  if (number == kNoGgmlType) return std::nullopt;
  return static_cast<uint32_t>(number);
}

std::string_view ggml_type_name(uint32_t type) {
  if (const auto dtype = dtype_of_ggml(type)) return info(*dtype).file_name;
  for (const OtherType& each : kOthers) {
    if (each.number == type) return each.name;
  }
  return "unknown";
}

bool is_gguf_alignment(uint64_t alignment) {
  return alignment >= 8 && alignment <= kGgufMaxAlignment && std::has_single_bit(alignment);
}

}  // namespace rbee::io
