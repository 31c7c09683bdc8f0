#pragma once
// Names and limits of the safetensors format, shared by the reader and the writer.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/core/dtype.h"

namespace rbee::io {

inline constexpr uint64_t kSafetensorsMaxHeader = 100'000'000;  // bytes, as the original refuses
inline constexpr size_t kSafetensorsMaxName = 1024;
inline constexpr std::string_view kSafetensorsMetadata = "__metadata__";
inline constexpr std::string_view kSafetensorsE5m2 = "F8_E5M2";  // see TensorEntry::is_e5m2

// The type of this name; nothing if it is not implemented. BOOL and F8_E5M2 are read as u8.
std::optional<DType> dtype_of_safetensors(std::string_view name);

// A type without a DType that PyTorch writes. Numbers of such tensors are copied to memory as
// `dtype`, which holds them exactly, and U64's to 53 bits.
struct WidenedType {
  std::string_view name;
  DType stored;  // of the same size
  DType dtype;
  std::shared_ptr<const std::vector<std::byte>> (*widen)(std::span<const std::byte> data);
};
// Adapters have such numbers as factors. Weights of models in these types are refused: they are
// quantised in a way that is not implemented.
inline constexpr int64_t kMostWidened = int64_t{4} << 20;           // elements of a tensor
inline constexpr int64_t kMostWidenedTogether = int64_t{16} << 20;  // of all in a file
// Null: there is none of this name.
const WidenedType* widened_type(std::string_view name);

// The name of a plain type; nothing for block types.
std::optional<std::string_view> safetensors_type_of(DType dtype);
// The names of all types that are read, separated by ", ".
std::string safetensors_type_names();

}  // namespace rbee::io
