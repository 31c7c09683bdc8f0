#pragma once
// Parameters of the element-wise kernels; operand 0 of each space is y.

#include "backends/shared/strided_params.h"

namespace rbee {
namespace shared {

struct AffineParams {
  const void* x;
  void* y;
  double mul, add;
  Strided<2> space;
};

struct UnaryParams {
  const void* x;
  void* y;
  double param;
  u32 op;  // UnaryOp
  Strided<2> space;
};

// binary, compare and gated (gate and up)
struct BinaryParams {
  const void* a;
  const void* b;
  void* y;
  u32 op;  // BinaryOp, CompareOp or GateOp
  Strided<3> space;
};

struct WhereParams {
  const void* cond;
  const void* a;
  const void* b;
  void* y;
  u32 cond_bytes;  // of an element of cond: 1, 2, 4 or 8
  Strided<4> space;
};

// Blocks of x lie one after another, row-major in y's sizes.
struct DequantizeParams {
  const void* x;
  void* y;
  u64 first;  // element of x that the space begins with
  u32 to;     // 0: f32, 1: f16, 2: bf16, 3: f64, 4: f8e4m3
  Strided<1> space;
};

// copy and cast
struct CopyParams {
  const void* x;
  void* y;
  Strided<2> space;
};

struct FillParams {
  void* y;
  u64 bits;  // the element, low bytes first
  Strided<1> space;
};

}  // namespace shared
}  // namespace rbee
