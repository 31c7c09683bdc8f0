#pragma once
// Matrices of small numbers with scales, as post-training quantisers pack them: AutoAWQ's "gemm",
// AutoGPTQ's, compressed-tensors' "pack-quantized", and floats of 4 bits.

#include <cstdint>
#include <vector>

#include "rbee/io/tensor_entry.h"

namespace rbee::io {

// (rows, in) codes of 2, 3, 4 or 8 bits in little-endian words of 32 bits, lowest bits first.
// weight = scale * (code - zero), where the inputs of a group share a row's scale and zero.
struct IntegerMatrix {
  enum class Order : uint8_t {
    rows,     // compressed-tensors: words (rows, in), scales (rows, groups), zeros (rows, groups)
              // with codes along rows
    columns,  // GPTQ: words (in, rows) with codes along in, scales (groups, rows), zeros
              // (groups, rows) with codes along rows
    awq,      // AWQ: words (in, rows), scales (groups, rows) and zeros (groups, rows), all codes
              // along rows, eight of a word in the order 0 2 4 6 1 3 5 7
    e2m1,     // NVFP4 and MXFP4: weight = code * scale. Bytes (rows, in / 2) of E2M1 codes, an even
              // input in the low nibble; scales (rows, groups) as bytes: E4M3 for groups of 16
              // inputs, E8M0 for groups of 32
  };
  Order order = Order::rows;
  int bits = 4;
  int64_t rows = 0, in = 0, groups = 0;
  TensorEntry words, scales;
  TensorEntry zeros;              // no data: every zero is 2^(bits - 1)
  int zero_offset = 0;            // what is added to stored zeros
  int64_t group_size = 0;         // inputs, where `group_of` is empty; the last group may be cut
  std::vector<int32_t> group_of;  // the group of each input
  // All inputs, group by group, if this order makes rows whole blocks of `grouped_type` and the
  // matrix's own order does not; else empty.
  std::vector<int32_t> inputs_by_group;
  DType grouped_type = DType::f16;

  int middle() const { return static_cast<int>(int64_t{1} << (bits - 1)); }
  int64_t group_at(int64_t input) const {
    return group_of.empty() ? input / group_size : group_of[static_cast<size_t>(input)];
  }
};

// Some rows of such a matrix.
struct UnpackedRows {
  std::vector<uint8_t> codes;   // (rows, in)
  std::vector<float> scales;    // (rows, groups)
  std::vector<uint16_t> zeros;  // (rows, groups)
};

// Writes rows [first, first + count) into `to` and reuses its memory.
void unpack_rows(const IntegerMatrix& matrix, int64_t first, int64_t count, UnpackedRows& to);

// The zero of a group of a row.
uint16_t zero_at(const IntegerMatrix& matrix, int64_t row, int64_t group);

// The values of those rows, (count, in), each rounded once to f32.
std::vector<float> integer_values(const IntegerMatrix& matrix, int64_t first, int64_t count);

}  // namespace rbee::io
