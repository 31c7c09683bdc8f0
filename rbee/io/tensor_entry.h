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

// Scales of an FP8 matrix: the stored values are multiplied by one number for each block of (rows,
// columns) of the whole matrix, row-major. The last blocks may be smaller.
struct Fp8Scales {
  int64_t rows = 1, columns = 1;
  std::shared_ptr<const std::vector<float>> values;  // null: none
  int64_t first_row = 0;                             // of the matrix, the entry's first
  bool rounds_inputs = false;  // the checkpoint is meant for inputs of 8 bits too
};

struct IntegerMatrix;

// A named tensor in a mapped file. Nothing is read before a caller reads `data`.
struct TensorEntry {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;  // outermost first, e.g. (rows, columns)
  // Row-major. Block types have whole blocks along the last axis; if its size does not divide
  // (original_shapes.h), blocks cross the ends of rows.
  std::span<const std::byte> data;
  std::shared_ptr<const MappedFile> file;
  // Keeps `data` alive if it was made in memory; then `file` is null.
  std::shared_ptr<const void> owner;
  // Bytes are F8_E5M2, the upper halves of f16 numbers. There is no DType for it: `dtype` is u8.
  bool is_e5m2 = false;
  float scale = 1;  // of floats of one byte: what the stored values are multiplied by
  Fp8Scales scales = {};
  // Set if the checkpoint packs integers in its own way (integer_matrix.h): `data` holds the packed
  // words, and rows become `dtype`.
  std::shared_ptr<const IntegerMatrix> integers = nullptr;

  std::string source() const;  // the file's path, or "memory"
};

// Bytes of a tensor. Throws invalid_argument, naming `what`, if the sizes overflow or the last axis
// is not a multiple of the type's block.
int64_t tensor_bytes(DType dtype, const Shape& shape, std::string_view what);

// Whether elements are FP8, floats of one byte (Micikevicius et al. 2022).
bool is_fp8(const TensorEntry& entry);

// FP8 elements times their scales, as f16 or bf16 in new memory. Exact if the scales are one, else
// rounded.
TensorEntry widened(const TensorEntry& entry, DType dtype);

// Multiplies the stored values of a row of such an entry by their scales.
void scale_row(const TensorEntry& entry, int64_t row, std::span<float> values);

// All elements, rounded to f32: floats, integers (some files have them as factors), or packed
// integers. Throws unsupported for block types, naming the tensor.
std::vector<float> read_floats(const TensorEntry& entry);

// Throws invalid_argument if two of the tensors, all of one file, share bytes.
void check_no_overlap(std::span<const TensorEntry> tensors, std::string_view source);

}  // namespace rbee::io
