#include "rbee/io/tensor_entry.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "rbee/core/error.h"

namespace rbee::io {

std::string TensorEntry::source() const {
  return file ? file->path().string() : "memory";
}

namespace {

// Data in files may lie at any byte.
template <typename T, typename Convert>
std::vector<float> converted(std::span<const std::byte> data, const Convert& convert) {
  std::vector<float> out(data.size() / sizeof(T));
  for (size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, &data[i * sizeof(T)], sizeof(T));
    out[i] = convert(value);
  }
  return out;
}

float value_of(uint8_t byte, const TensorEntry& entry) {
  const float stored =
      entry.is_e5m2 ? to_float(f16{static_cast<uint16_t>(byte << 8)}) : to_float(f8e4m3{byte});
  return entry.scale * stored;
}

}  // namespace

bool is_fp8(const TensorEntry& entry) {
  return entry.is_e5m2 || entry.dtype == DType::f8e4m3;
}

TensorEntry widened(const TensorEntry& entry, DType dtype) {
  check(is_fp8(entry) && (dtype == DType::f16 || dtype == DType::bf16), entry.name, entry.dtype,
        " is not widened to ", dtype);
  std::array<uint16_t, 256> table;
  for (size_t byte = 0; byte < table.size(); ++byte) {
    const float value = value_of(static_cast<uint8_t>(byte), entry);
    table[byte] = dtype == DType::f16 ? to_f16(value).bits : to_bf16(value).bits;
  }
  auto values = std::make_shared<std::vector<uint16_t>>(entry.data.size());
  std::ranges::transform(entry.data, values->begin(),
                         [&](std::byte byte) { return table[static_cast<size_t>(byte)]; });
  TensorEntry out{entry.name, dtype, entry.shape, std::as_bytes(std::span(*values))};
  out.owner = values;
  return out;
}

std::vector<float> read_floats(const TensorEntry& entry) {
  if (is_fp8(entry)) {
    return converted<uint8_t>(entry.data, [&](uint8_t byte) { return value_of(byte, entry); });
  }
  const auto widen = [](auto value) { return to_float(value); };
  if (entry.dtype == DType::f16) return converted<f16>(entry.data, widen);
  if (entry.dtype == DType::bf16) return converted<bf16>(entry.data, widen);
  if (entry.dtype == DType::f32) {
    return converted<float>(entry.data, [](float value) { return value; });
  }
  fail(Code::unsupported, entry.source(), "tensor ", entry.name, " is stored as ", entry.dtype,
       ", wanted f32, f16, bf16 or a float of one byte");
}

int64_t tensor_bytes(DType dtype, const Shape& shape, std::string_view what) {
  int64_t elements = 1;
  for (const int64_t size : shape) {
    check(size >= 0 && !__builtin_mul_overflow(elements, size, &elements), what, "its shape (",
          shape, ") has no 64-bit size");
  }
  const DTypeInfo& type = info(dtype);
  const int64_t columns = shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
  check(columns % type.block_size == 0, what, "its rows of ", columns,
        " elements are not a multiple of ", type.name, "'s block of ", type.block_size);
  int64_t bytes = 0;
  check(!__builtin_mul_overflow(elements / type.block_size, int64_t{type.block_bytes}, &bytes),
        what, "its ", elements, " ", type.name, " elements have no 64-bit size in bytes");
  return bytes;
}

void check_no_overlap(std::span<const TensorEntry> tensors, std::string_view source) {
  std::vector<const TensorEntry*> order;
  order.reserve(tensors.size());
  for (const TensorEntry& tensor : tensors) {
    if (!tensor.data.empty()) order.push_back(&tensor);
  }
  std::ranges::sort(order, {}, [](const TensorEntry* tensor) { return tensor->data.data(); });
  for (size_t i = 1; i < order.size(); ++i) {
    const TensorEntry& before = *order[i - 1];
    const TensorEntry& here = *order[i];
    check(before.data.data() + before.data.size() <= here.data.data(), source, "the tensors ",
          before.name, " and ", here.name, " overlap by ",
          before.data.data() + before.data.size() - here.data.data(), " bytes");
  }
}

}  // namespace rbee::io
