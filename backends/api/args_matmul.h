#pragma once

#include <span>

#include "backends/api/args_elementwise.h"
#include "backends/api/view.h"

namespace rbee {

// y[..., m, n] = sum_k a[..., m, k] * b[..., k, n]; batch axes broadcast (stride 0), any strides,
// so that a transposed operand is a view. f16, bf16 and f8 accumulate in float.
struct MatmulArgs {
  View a, b, y;
};

// One of several matrices that share an input: y = x * weight^T + bias
struct LinearPart {
  View weight;  // (out, in), plain dtype, block type, or packed by pack_weight
  View bias;    // (out), y's dtype; absent = none
  View y;       // (rows, out), contiguous
};

// Linear layers with one input. A kernel can convert the shared x once (e.g. to 8-bit blocks).
struct LinearArgs {
  View x;                             // (rows, in) f32, f16 or bf16; contiguous
  std::span<const LinearPart> parts;  // at least one
  // f16 or bf16: kernels may round x to this type, e.g. because x was cast from it. f8e4m3: they
  // may round x to it with a scale for each 128 elements of a row, for products with f8_g128. f32:
  // they may not round x, except for products with block types.
  DType may_round_to = DType::f32;
};

// Linear layers fused with their neighbours in a transformer:
//   h = norm_weight present ? rms_norm(x, norm_weight, eps) : x
//   y = residual + act(h * gate^T + bias) * (h * up^T + bias), each part if it is asked for
// h may be rounded to x's dtype. Backends may leave this slot empty or refuse: then the plain
// operations do the same. Weights and norm_weight must be a model's: GPUs may read them before
// earlier operations have ended, and wait only for operations such as pack, convert or copy. So
// none may be a result of this operation, of a rotation or of attention.
struct FusedLinearArgs {
  View x;                             // (rows, in) f32, f16 or bf16; contiguous
  View norm_weight;                   // (in), x's dtype; absent = none
  float eps = 0;                      // of the norm
  View residual;                      // (rows, out), x's dtype, contiguous; absent = none
  bool gated = false;                 // two parts of one size, gate and up; the first has y
  GateOp gate = GateOp::silu;         // with gated
  std::span<const LinearPart> parts;  // one with a residual, at least one else
};

// A linear layer fused with what follows it in a transformer:
//   sum = residual + (x * weight^T + bias)
//   y = rms_norm(sum, norm_weight, eps)
// The product may be rounded to x's dtype before the addition. Backends may leave this slot empty
// or refuse: then the plain operations do the same.
struct LinearNormArgs {
  View x;            // (rows, in) f32, f16 or bf16; contiguous
  View weight;       // (dim, in), as LinearPart's
  View bias;         // (dim), x's dtype; absent = none
  View residual;     // (rows, dim), x's dtype, contiguous
  View norm_weight;  // (dim), x's dtype, contiguous
  float eps = 0;
  View sum, y;  // (rows, dim), x's dtype, contiguous
};

// Rewrites a weight for the backend's linear kernels.
struct PackWeightArgs {
  View weight;  // (out, in), contiguous, packing 0
  View packed;  // `packing` as planned; data of the planned size
};

struct PackingPlan {
  uint8_t packing = 0;     // 0: keep the plain layout
  int64_t bytes = 0;       // size of the packed data
  int64_t alignment = 64;  // bytes
  // If a weight is cut at multiples of this number of rows, packing its parts gives the same bytes,
  // one part after another. 0: it can only be packed as a whole.
  int64_t unit_rows = 0;
};

}  // namespace rbee
