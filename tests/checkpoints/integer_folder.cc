#include "tests/checkpoints/integer_folder.h"

#include <array>
#include <cstring>
#include <fstream>
#include <span>

#include "rbee/core/error.h"
#include "rbee/core/half.h"
#include "rbee/io/safetensors_writer.h"

namespace rbee::test {
namespace {

// Words of (down, across), with codes along one of the axes.
struct Words {
  int64_t down, across;
  std::vector<uint32_t> values;

  Words(int64_t rows, int64_t columns)
      : down(rows), across(columns), values(static_cast<size_t>(rows * columns)) {}

  void put_bit(int64_t row, int64_t column, int64_t bit, int value) {
    values[static_cast<size_t>(row * across + column)] |= static_cast<uint32_t>(value) << bit;
  }
  void put_along_row(int64_t row, int64_t index, int bits, int code) {
    for (int64_t b = 0; b < bits; ++b) {
      const int64_t bit = index * bits + b;
      put_bit(row, bit / 32, bit % 32, code >> b & 1);
    }
  }
  void put_along_column(int64_t column, int64_t index, int bits, int code) {
    for (int64_t b = 0; b < bits; ++b) {
      const int64_t bit = index * bits + b;
      put_bit(bit / 32, column, bit % 32, code >> b & 1);
    }
  }
  // Eight codes of a word in AWQ's order.
  void put_awq(int64_t row, int64_t index, int code) {
    constexpr std::array<int64_t, 8> kOrder{0, 2, 4, 6, 1, 3, 5, 7};
    for (int64_t place = 0; place < 8; ++place) {
      if (kOrder[static_cast<size_t>(place)] == index % 8) {
        put_along_row(row, index / 8 * 8 + place, 4, code);
      }
    }
  }

  RawTensor named(std::string name) const {
    RawTensor out{std::move(name), DType::i32, Shape{down, across}, {}};
    out.bytes.resize(values.size() * sizeof(uint32_t));
    std::memcpy(out.bytes.data(), values.data(), out.bytes.size());
    return out;
  }
};

template <typename T>
void append(std::vector<uint8_t>& bytes, T value) {
  const auto* from = reinterpret_cast<const uint8_t*>(&value);
  bytes.insert(bytes.end(), from, from + sizeof value);
}

RawTensor scales_of(const PlainIntegers& matrix, std::string name, bool by_rows) {
  const int64_t groups = matrix.groups();
  RawTensor out{std::move(name),
                matrix.scale_type,
                by_rows ? Shape{matrix.rows, groups} : Shape{groups, matrix.rows},
                {}};
  for (int64_t i = 0; i < matrix.rows * groups; ++i) {
    const float scale = by_rows ? matrix.scale(i / groups, i % groups)
                                : matrix.scale(i % matrix.rows, i / matrix.rows);
    if (matrix.scale_type == DType::f16) {
      append(out.bytes, to_f16(scale));
    } else if (matrix.scale_type == DType::bf16) {
      append(out.bytes, to_bf16(scale));
    } else {
      append(out.bytes, scale);
    }
  }
  return out;
}

RawTensor groups_of(const PlainIntegers& matrix, std::string name) {
  RawTensor out{std::move(name), DType::i32, Shape{matrix.in}, {}};
  for (int64_t i = 0; i < matrix.in; ++i) {
    append(out.bytes, static_cast<int32_t>(matrix.group_of(i)));
  }
  return out;
}

std::vector<RawTensor> compressed_tensors(const PlainIntegers& matrix, std::string_view name) {
  const int64_t groups = matrix.groups();
  Words words(matrix.rows, (matrix.in * matrix.bits + 31) / 32);
  Words zeros((matrix.rows * matrix.bits + 31) / 32, groups);
  for (int64_t row = 0; row < matrix.rows; ++row) {
    for (int64_t i = 0; i < matrix.in; ++i) {
      words.put_along_row(row, i, matrix.bits, matrix.code(row, i));
    }
    for (int64_t g = 0; g < groups; ++g) {
      zeros.put_along_column(g, row, matrix.bits, matrix.zero(row, g));
    }
  }
  RawTensor shape{cat(name, ".weight_shape"), DType::i64, Shape{2}, {}};
  append(shape.bytes, matrix.rows);
  append(shape.bytes, matrix.in);
  std::vector<RawTensor> out{shape, words.named(cat(name, ".weight_packed")),
                             scales_of(matrix, cat(name, ".weight_scale"), true)};
  if (!matrix.symmetric) out.push_back(zeros.named(cat(name, ".weight_zero_point")));
  if (matrix.order) out.push_back(groups_of(matrix, cat(name, ".weight_g_idx")));
  return out;
}

}  // namespace

int PlainIntegers::group_of(int64_t input) const {
  return static_cast<int>(order ? input % groups() : input / group);
}
int PlainIntegers::code(int64_t row, int64_t input) const {
  return static_cast<int>((row * 7 + input * 5 + input / 16 + row * input) % (1 << bits));
}
int PlainIntegers::zero(int64_t row, int64_t at) const {
  const int middle = 1 << (bits - 1);
  return symmetric ? middle : 1 + static_cast<int>((row * 3 + at * 2) % ((1 << bits) - 1));
}
float PlainIntegers::scale(int64_t row, int64_t at) const {
  return scale_unit * static_cast<float>(1 + (row * 11 + at * 5) % 61);
}
float PlainIntegers::value(int64_t row, int64_t input) const {
  const int at = group_of(input);
  return static_cast<float>(code(row, input) - zero(row, at)) * scale(row, at);
}

std::vector<RawTensor> integer_tensors(IntegerForm form, const PlainIntegers& matrix,
                                       std::string_view name) {
  if (form == IntegerForm::compressed) return compressed_tensors(matrix, name);
  const bool awq = form == IntegerForm::awq;
  const int bits = matrix.bits, less = form == IntegerForm::gptq ? 1 : 0;
  Words words = awq ? Words(matrix.in, matrix.rows / 8) : Words(matrix.in * bits / 32, matrix.rows);
  Words zeros(matrix.groups(), matrix.rows * bits / 32);
  for (int64_t row = 0; row < matrix.rows; ++row) {
    for (int64_t i = 0; i < matrix.in; ++i) {
      const int code = matrix.code(row, i);
      awq ? words.put_awq(i, row, code) : words.put_along_column(row, i, bits, code);
    }
    for (int64_t g = 0; g < matrix.groups(); ++g) {
      const int zero = matrix.zero(row, g) - less;
      awq ? zeros.put_awq(g, row, zero) : zeros.put_along_row(g, row, bits, zero);
    }
  }
  std::vector<RawTensor> out{words.named(cat(name, ".qweight")), zeros.named(cat(name, ".qzeros")),
                             scales_of(matrix, cat(name, ".scales"), false)};
  if (!awq) out.push_back(groups_of(matrix, cat(name, ".g_idx")));
  return out;
}

std::string integer_config(IntegerForm form, const PlainIntegers& matrix) {
  const bool whole = matrix.group >= matrix.in;
  const std::string group = cat(R"("group_size":)", whole ? int64_t{-1} : matrix.group);
  if (form == IntegerForm::awq) {
    return cat(R"({"quant_method":"awq","version":"gemm","zero_point":true,"bits":)", matrix.bits,
               ",", group, "}");
  }
  if (form == IntegerForm::compressed) {
    return cat(R"({"quant_method":"compressed-tensors","format":"pack-quantized","config_groups":)",
               R"({"group_0":{"weights":{"type":"int","num_bits":)", matrix.bits, ",", group,
               R"(,"strategy":")", whole ? "channel" : "group", R"(","symmetric":)",
               matrix.symmetric ? "true" : "false", "}}}}");
  }
  return cat(R"({"quant_method":"gptq","checkpoint_format":")",
             form == IntegerForm::gptq ? "gptq" : "gptq_v2", R"(","desc_act":)",
             matrix.order ? "true" : "false", R"(,"bits":)", matrix.bits, ",", group, "}");
}

void write_raw_folder(const std::filesystem::path& folder, std::string_view quantization,
                      const std::vector<RawTensor>& tensors) {
  std::ofstream(folder / "config.json") << R"({"quantization_config":)" << quantization << "}";
  io::SafetensorsWriter writer;
  for (const RawTensor& tensor : tensors) {
    writer.add_tensor(tensor.name, tensor.dtype, tensor.shape);
  }
  writer.begin(folder / "model.safetensors");
  for (const RawTensor& tensor : tensors) writer.write(std::as_bytes(std::span(tensor.bytes)));
  writer.finish();
}

}  // namespace rbee::test
