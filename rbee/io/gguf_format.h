#pragma once
// Numbers of the GGUF container, shared by the reader and the writer
// (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3).

#include <cstdint>
#include <optional>
#include <string_view>

#include "rbee/core/dtype.h"

namespace rbee::io {

inline constexpr uint32_t kGgufMagic = 0x46554747;  // "GGUF" in the file's order
inline constexpr uint32_t kGgufVersion = 3;
inline constexpr uint32_t kGgufAlignment = 32;  // without general.alignment
inline constexpr uint32_t kGgufMaxDims = 4;
inline constexpr uint32_t kGgufMaxAlignment = 1u << 20;

// The type with this number in GGUF files; nothing if it is not implemented.
std::optional<DType> dtype_of_ggml(uint32_t type);
// The number of a type; nothing if GGUF files cannot hold it.
std::optional<uint32_t> ggml_type_of(DType dtype);
// ggml's name for the number, e.g. "IQ2_XXS", or "unknown".
std::string_view ggml_type_name(uint32_t type);
// Whether it is a power of two from 8 to kGgufMaxAlignment.
bool is_gguf_alignment(uint64_t alignment);
// `offset` rounded up to a multiple of `alignment`.
inline uint64_t align_up(uint64_t offset, uint64_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

}  // namespace rbee::io
