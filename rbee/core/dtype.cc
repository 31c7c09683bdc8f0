#include "rbee/core/dtype.h"

#include "rbee/core/error.h"

namespace rbee {
std::optional<DType> parse_dtype(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  for (const DType dtype : kAllDTypes) {
    if (lower == name(dtype)) return dtype;
  }
  return std::nullopt;
}

int64_t row_bytes(DType dtype, int64_t elements) {
  const DTypeInfo& type = info(dtype);
  check(elements >= 0 && elements % type.block_size == 0, "row_bytes", "a row of ", elements,
        " elements is not a multiple of ", type.name, "'s block of ", type.block_size);
  int64_t bytes = 0;
  check(!__builtin_mul_overflow(elements / type.block_size, int64_t{type.block_bytes}, &bytes),
        "row_bytes", "a row of ", elements, " ", type.name, " elements overflows 64 bits");
  return bytes;
}

void append_to(std::string& out, DType dtype) {
  out.append(name(dtype));
}

}  // namespace rbee
