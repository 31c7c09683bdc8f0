#include "rbee/io/tensor_entry.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "rbee/core/error.h"
#include "rbee/io/integer_matrix.h"

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

// The value of a byte, without scales.
float value_of(uint8_t byte, const TensorEntry& entry) {
  return entry.is_e5m2 ? to_float(f16{static_cast<uint16_t>(byte << 8)}) : to_float(f8e4m3{byte});
}

// work(scale, first, count) for runs of a row's columns that share a scale.
template <typename Work>
void for_runs(const TensorEntry& entry, int64_t row, const Work& work) {
  const Fp8Scales& scales = entry.scales;
  const int64_t columns = entry.shape[1];
  const int64_t across = (columns + scales.columns - 1) / scales.columns;
  const float* values = scales.values->data() + (scales.first_row + row) / scales.rows * across;
  for (int64_t column = 0; column < columns; column += scales.columns) {
    work(values[column / scales.columns], column, std::min(scales.columns, columns - column));
  }
}

// The same of all elements, row-major.
template <typename Work>
void for_runs(const TensorEntry& entry, const Work& work) {
  if (entry.scales.values == nullptr) {
    return work(entry.scale, int64_t{0}, static_cast<int64_t>(entry.data.size()));
  }
  for (int64_t row = 0; row < entry.shape[0]; ++row) {
    for_runs(entry, row, [&](float scale, int64_t column, int64_t count) {
      work(scale, row * entry.shape[1] + column, count);
    });
  }
}

void multiply(std::span<float> values, float scale) {
  for (float& value : values) value *= scale;
}

}  // namespace

bool is_fp8(const TensorEntry& entry) {
  return entry.is_e5m2 || entry.dtype == DType::f8e4m3;
}

TensorEntry widened(const TensorEntry& entry, DType dtype) {
  check(is_fp8(entry) && (dtype == DType::f16 || dtype == DType::bf16), entry.name, entry.dtype,
        " is not widened to ", dtype);
  std::array<float, 256> table;
  for (size_t byte = 0; byte < table.size(); ++byte) {
    table[byte] = value_of(static_cast<uint8_t>(byte), entry);
  }
  auto values = std::make_shared<std::vector<uint16_t>>(entry.data.size());
  const auto fill = [&](auto round) {
    for_runs(entry, [&](float scale, int64_t first, int64_t count) {
      const std::byte* from = entry.data.data() + first;
      std::transform(from, from + count, values->begin() + first, [&](std::byte byte) {
        return round(scale * table[static_cast<size_t>(byte)]).bits;
      });
    });
  };
  if (dtype == DType::f16) {
    fill([](float x) { return to_f16(x); });
  } else {
    fill([](float x) { return to_bf16(x); });
  }
  TensorEntry out{entry.name, dtype, entry.shape, std::as_bytes(std::span(*values))};
  out.owner = values;
  return out;
}

void scale_row(const TensorEntry& entry, int64_t row, std::span<float> values) {
  if (entry.scales.values == nullptr) return multiply(values, entry.scale);
  for_runs(entry, row, [&](float scale, int64_t first, int64_t count) {
    multiply(values.subspan(static_cast<size_t>(first), static_cast<size_t>(count)), scale);
  });
}

std::vector<float> read_floats(const TensorEntry& entry) {
  if (entry.integers) return integer_values(*entry.integers, 0, entry.shape[0]);
  if (is_fp8(entry)) {
    std::vector<float> values =
        converted<uint8_t>(entry.data, [&](uint8_t byte) { return value_of(byte, entry); });
    for_runs(entry, [&](float scale, int64_t first, int64_t count) {
      multiply(std::span(values).subspan(static_cast<size_t>(first), static_cast<size_t>(count)),
               scale);
    });
    return values;
  }
  const auto widen = [](auto value) { return to_float(value); };
  if (entry.dtype == DType::f16) return converted<f16>(entry.data, widen);
  if (entry.dtype == DType::bf16) return converted<bf16>(entry.data, widen);
  const auto narrow = [](auto value) { return static_cast<float>(value); };
  switch (entry.dtype) {
    case DType::f32:
      return converted<float>(entry.data, narrow);
    case DType::f64:
      return converted<double>(entry.data, narrow);
    case DType::i64:
      return converted<int64_t>(entry.data, narrow);
    case DType::i32:
      return converted<int32_t>(entry.data, narrow);
    case DType::i16:
      return converted<int16_t>(entry.data, narrow);
    case DType::u32:
      return converted<uint32_t>(entry.data, narrow);
    case DType::u8:
      return converted<uint8_t>(entry.data, narrow);
    default:
      fail(Code::unsupported, entry.source(), "tensor ", entry.name, " is stored as ", entry.dtype,
           ", wanted floats or integers without blocks");
  }
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
