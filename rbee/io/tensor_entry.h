#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/core/dtype.h"
#include "rbee/core/shape.h"
#include "rbee/io/mapped_file.h"

namespace rbee::io {

// What the stored values of a matrix of floats of one byte are multiplied by: a number for each
// block of (rows, columns), row-major, of the whole matrix, whose last blocks may be cut.
struct Fp8Scales {
  int64_t rows = 1, columns = 1;
  std::shared_ptr<const std::vector<float>> values;  // null: none
  int64_t first_row = 0;                             // of the matrix, the entry's first
  bool rounds_inputs = false;  // the checkpoint is meant for inputs of 8 bits too
};

struct IntegerMatrix;

// A named tensor that lies in a mapped file. Not touched before somebody reads `data`.
struct TensorEntry {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;  // outermost first, e.g. (rows, columns)
  // Row-major; block types: whole blocks along the last axis, or where that does not divide
  // (original_shapes.h) over the ends of rows.
  std::span<const std::byte> data;
  std::shared_ptr<const MappedFile> file;
  // Keeps `data` alive where that was made in memory; `file` is null then.
  std::shared_ptr<const void> owner;
  // Bytes are the upper halves of f16 numbers (F8_E5M2), which no DType stands for: `dtype` is u8.
  bool is_e5m2 = false;
  float scale = 1;  // of floats of one byte: what the stored values are multiplied by
  Fp8Scales scales = {};
  // What makes the matrix where the checkpoint packs integers in its own way (integer_matrix.h):
  // `data` is then its words, and `dtype` what rows are to become.
  std::shared_ptr<const IntegerMatrix> integers = nullptr;

  std::string source() const;  // the file's path, or "memory"
};

// Bytes of a tensor. Throws invalid_argument, naming `what`, when the sizes overflow or the last
// axis is not a multiple of the type's block.
int64_t tensor_bytes(DType dtype, const Shape& shape, std::string_view what);

// Whether elements are floats of one byte (Micikevicius et al. 2022).
bool is_fp8(const TensorEntry& entry);

// Floats of one byte, times their scales, as f16 or bf16 in memory of their own: exact for
// scales of one, else rounded.
TensorEntry widened(const TensorEntry& entry, DType dtype);

// Multiplies the values that a row of such an entry stores by their scales.
void scale_row(const TensorEntry& entry, int64_t row, std::span<float> values);

// All elements, rounded to f32: of floats, of integers, which files use for factors, or of packed
// integers. Throws unsupported for types in blocks, naming the tensor.
std::vector<float> read_floats(const TensorEntry& entry);

// Throws invalid_argument when two of the tensors, all of one file, share bytes.
void check_no_overlap(std::span<const TensorEntry> tensors, std::string_view source);

}  // namespace rbee::io
