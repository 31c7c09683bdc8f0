#include "rbee/nn/unpack_integers.h"

#include <cstring>
#include <span>
#include <vector>

#include "rbee/core/error.h"
#include "rbee/core/half.h"
#include "rbee/io/integer_matrix.h"
#include "rbee/nn/row_threads.h"
#include "rbee/quant/integer_rows.h"
#include "rbee/quant/mxfp4_rows.h"
#include "rbee/quant/nvfp4_rows.h"

namespace rbee::nn {
namespace {

constexpr int64_t kRowsAtOnce = 64;  // their codes stay in a second-level cache

// The form of rows.
struct RowForm {
  DType dtype = DType::f16;
  std::span<const int32_t> order;  // of inputs; empty: as they are
};

class Unpacker {
 public:
  Unpacker(const io::IntegerMatrix& matrix, const RowForm& form)
      : matrix_(matrix), dtype_(form.dtype), order_(form.order) {
    const int64_t block = info(dtype_).block_size;
    if (block == 1) return;
    for (int64_t place = 0; place < matrix.in; place += block) {
      const int64_t input = order_.empty() ? place : order_[static_cast<size_t>(place)];
      group_of_block_.push_back(static_cast<int32_t>(matrix.group_at(input)));
    }
  }

  void run(int64_t first, int64_t count, io::UnpackedRows& rows, std::byte* to) const {
    if (group_of_block_.empty()) return round(io::integer_values(matrix_, first, count), to);
    io::unpack_rows(matrix_, first, count, rows);
    if (!order_.empty()) put_in_order(rows.codes);
    quant::integer_blocks(dtype_,
                          {.codes = rows.codes,
                           .rows = count,
                           .in = matrix_.in,
                           .bits = matrix_.bits,
                           .scales = rows.scales,
                           .zeros = rows.zeros,
                           .groups = matrix_.groups,
                           .group_of_block = group_of_block_},
                          to);
  }

 private:
  void put_in_order(std::span<uint8_t> codes) const {
    std::vector<uint8_t> row(order_.size());
    for (; !codes.empty(); codes = codes.subspan(row.size())) {
      std::memcpy(row.data(), codes.data(), row.size());
      for (size_t place = 0; place < row.size(); ++place) {
        codes[place] = row[static_cast<size_t>(order_[place])];
      }
    }
  }

  void round(const std::vector<float>& values, std::byte* to) const {
    for (size_t i = 0; i < values.size(); ++i) {
      const uint16_t bits = dtype_ == DType::f16 ? to_f16(values[i]).bits : to_bf16(values[i]).bits;
      std::memcpy(to + i * sizeof bits, &bits, sizeof bits);
    }
  }

  const io::IntegerMatrix& matrix_;
  DType dtype_;
  std::span<const int32_t> order_;
  std::vector<int32_t> group_of_block_;  // none: rows become floats
};

// Rows of floats of 4 bits as blocks, which keep their bits.
void put_float4_rows(const io::IntegerMatrix& matrix, DType dtype, int64_t first, int64_t count,
                     std::byte* to) {
  const auto part = [&](const io::TensorEntry& entry, int64_t row) {
    return entry.data.subspan(static_cast<size_t>(first * row), static_cast<size_t>(count * row));
  };
  const auto codes = part(matrix.words, matrix.in / 2), scales = part(matrix.scales, matrix.groups);
  if (dtype == DType::nvfp4) return quant::nvfp4_blocks({codes, scales}, to);
  const std::vector<std::byte> blocks = quant::mxfp4_blocks(
      {.codes = codes, .scales = scales, .rows = count, .groups = matrix.groups});
  std::memcpy(to, blocks.data(), blocks.size());
}

io::TensorEntry rows_of(const io::TensorEntry& entry, int64_t first, int64_t count,
                        const RowForm& form) {
  const io::IntegerMatrix& matrix = *entry.integers;
  const Unpacker unpacker(matrix, form);
  const int64_t row_size = row_bytes(form.dtype, matrix.in);
  const auto out = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(count * row_size));
  for_rows<io::UnpackedRows>(count, kRowsAtOnce,
                             [&](int64_t at, int64_t rows, io::UnpackedRows& room) {
                               std::byte* to = out->data() + at * row_size;
                               if (matrix.order == io::IntegerMatrix::Order::e2m1) {
                                 put_float4_rows(matrix, form.dtype, first + at, rows, to);
                               } else {
                                 unpacker.run(first + at, rows, room, to);
                               }
                             });
  return {.name = entry.name,
          .dtype = form.dtype,
          .shape = Shape{count, matrix.in},
          .data = *out,
          .file = nullptr,
          .owner = out};
}

}  // namespace

io::TensorEntry unpacked(const io::TensorEntry& entry, int64_t first, int64_t count,
                         DType activations) {
  RB_ASSERT(entry.integers != nullptr);
  const bool narrow = !is_quantized(entry.dtype) && activations == DType::bf16;
  return rows_of(entry, first, count, {.dtype = narrow ? DType::bf16 : entry.dtype, .order = {}});
}

io::TensorEntry unpacked_by_group(const io::TensorEntry& entry, int64_t first, int64_t count) {
  RB_ASSERT(entry.integers != nullptr && !entry.integers->inputs_by_group.empty());
  const io::IntegerMatrix& matrix = *entry.integers;
  return rows_of(entry, first, count,
                 {.dtype = matrix.grouped_type, .order = matrix.inputs_by_group});
}

}  // namespace rbee::nn
