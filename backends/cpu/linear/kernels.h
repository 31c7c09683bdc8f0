#pragma once
// The interface of an instruction set's kernels for packed weights, between the portable driver
// (linear.cc) and the files under simd/linear.

#include <cstddef>
#include <cstdint>

#include "backends/cpu/linear/panel.h"
#include "rbee/core/dtype.h"

namespace rbee::cpu {

// The form of x that kernels read.
enum class InputForm : uint8_t {
  quantized,  // 8 bits in groups of 32
  f32,
  bf16,
  split,  // f32 as exact sums of bf16
};

inline constexpr int kSplitParts = 3;

// Rows of x in one of the forms; row r starts r strides further. A quantized row has
// x[k] ~ scale[k / 32] * q[k] with |q| <= 127, and sums of scale * q over 32 and over 16 inputs.
struct InputRows {
  const int8_t* q = nullptr;
  const float* scale = nullptr;
  const float* sum32 = nullptr;
  const float* sum16 = nullptr;
  const float* f32 = nullptr;
  const uint16_t* bf16 = nullptr;
  const uint16_t* split[kSplitParts] = {};
  // Elements of a row: a multiple of 32 if quantized or split, of 2 if bf16.
  int64_t stride = 0;
};

// One panel, `in` inputs of it, unpacked for products with many rows of x.
struct UnpackedPanel {
  uint8_t* q = nullptr;      // [in / 4][16][4], bytes as the format's `rows` wants them
  float* scale = nullptr;    // [in / group][16]
  float* offset = nullptr;   // [in / group][16]; absent for signed quants
  float* f32 = nullptr;      // [in][16]
  uint16_t* bf16 = nullptr;  // [in / 2][16][2]; split: [in / 32][2 parts][16][16][2]
};

// y[r][0 .. 15] = (or +=) sum over `in` inputs of x[r] * panel
struct PanelProduct {
  InputRows x;  // at the panel's first input
  int64_t rows = 0;
  int64_t in = 0;
  const std::byte* packed = nullptr;
  UnpackedPanel panel;  // for PanelKernels::rows
  float* y = nullptr;
  int64_t y_stride = 0;  // elements
  bool accumulate = false;
};

// Kernels of one packed weight type.
struct PanelKernels {
  InputForm input;
  // One row of x with a packed panel: limited by memory. Null if `rows` does that too.
  void (*row)(const PanelProduct&);
  // Null if `rows` reads the packed panel itself.
  void (*unpack)(const std::byte* packed, int64_t in, const UnpackedPanel& out);
  // Any number of rows with an unpacked panel: limited by arithmetic.
  void (*rows)(const PanelProduct&);
  // The same rows with two panels, to the same bits; null if it is not faster.
  void (*pair)(const PanelProduct&, const PanelProduct&) = nullptr;
  // The form of x for `row` if x has one row; else `input`.
  InputForm row_input = input;
};

struct QuantizedRow {
  int8_t* q;
  float* scale;
  float* sum32;
  float* sum16;
};

// Rows of f32, f16 or bf16 whose elements adjoin.
struct FloatRows {
  // to = from
  void (*widen)(DType dtype, const void* from, int64_t count, float* to);
  // sums += from
  void (*add)(DType dtype, const void* from, int64_t count, float* sums);
  // to = from, rounded to nearest even
  void (*narrow)(DType dtype, const float* from, int64_t count, void* to);
};

// The kernels of each weight type; null for a type that has none.
struct WeightKernels {
  const PanelKernels* of[kDTypeCount] = {};

  constexpr const PanelKernels*& operator[](DType weight) {
    return of[static_cast<size_t>(weight)];
  }
  constexpr const PanelKernels* operator[](DType weight) const {
    return of[static_cast<size_t>(weight)];
  }
};

// Everything an instruction set has.
struct LinearIsa {
  const FloatRows* rows;
  // Blocks of rows of x are a multiple of this, the number of rows that kernels' `rows` takes at a
  // time.
  int64_t row_unit;
  // Bytes of a block's rows, unless in f32: they stay in the second-level cache while panels pass
  // by.
  int64_t block_bytes = 192 * 1024;
  // One row of x; `in` is a multiple of 32.
  void (*quantize)(const float* x, int64_t in, const QuantizedRow& out);
  // To bf16, round to nearest even; null if no kernel needs it.
  void (*to_bf16)(const float* x, int64_t in, uint16_t* out);
  // To parts that add up to x, padded with zeros to a multiple of 32; may be null too.
  void (*split)(const float* x, int64_t in, uint16_t* const (&parts)[kSplitParts]);
  WeightKernels kernels;
};

extern const FloatRows float_rows_portable;
extern const FloatRows float_rows_avx2;
extern const FloatRows float_rows_avx512;
extern const FloatRows float_rows_avx512bf16;
extern const FloatRows float_rows_neon;

extern const LinearIsa linear_portable;
extern const LinearIsa linear_avx2;
extern const LinearIsa linear_avxvnni;
extern const LinearIsa linear_avx512;
extern const LinearIsa linear_avx512bf16;
extern const LinearIsa linear_amx;
extern const LinearIsa linear_neon;
extern const LinearIsa linear_dotprod;
extern const LinearIsa linear_i8mm;

}  // namespace rbee::cpu
