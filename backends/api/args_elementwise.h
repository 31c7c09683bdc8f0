#pragma once
// Arguments of element-wise operations. All views have y's sizes; inputs may have stride 0.

#include "backends/api/view.h"

namespace rbee {

// y = mul * x + add, computed in the type of x (integers: in double, truncated)
struct AffineArgs {
  View x, y;
  double mul = 1, add = 0;
};

enum class UnaryOp : uint8_t {
  abs,
  ceil,
  cos,
  elu,  // x > 0 ? x : param * (exp(x) - 1)
  erf,
  exp,
  floor,
  gelu,      // tanh form: x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))
  gelu_erf,  // x * normcdf(x)
  log,
  neg,
  normcdf,
  powf,        // x ^ param
  quick_gelu,  // x * sigmoid(1.702 x)
  recip,
  relu,
  round,  // half away from zero
  sigmoid,
  sign,
  silu,
  sin,
  sqr,
  sqrt,
  tanh,
};
inline constexpr int kUnaryOpCount = 24;

struct UnaryArgs {
  UnaryOp op;
  View x, y;
  double param = 0;  // elu: alpha, powf: exponent; unused otherwise
};

enum class BinaryOp : uint8_t { add, sub, mul, div, minimum, maximum };

struct BinaryArgs {
  BinaryOp op;
  View a, b, y;  // one dtype; y may be a or b, element for element
};

enum class CompareOp : uint8_t { eq, ne, lt, le, gt, ge };

struct CompareArgs {
  CompareOp op;
  View a, b, y;  // y: u8, 0 or 1
};

// y = cond != 0 ? a : b
struct WhereArgs {
  View cond;     // any integer dtype
  View a, b, y;  // one dtype
};

// y = x converted. float to integer truncates and saturates; NaN gives 0. Block types: rows are
// contiguous and whole blocks, float on the other side.
struct CastArgs {
  View x, y;
};

// y = x, any strides on both sides, one dtype
struct CopyArgs {
  View x, y;
};

// dst[r * dst_stride + c] = src[r * src_stride + c] for r < rows, c < cols; views of rank 1
struct Copy2dArgs {
  View src, dst;
  int64_t rows = 0, cols = 0;              // elements
  int64_t src_stride = 0, dst_stride = 0;  // elements between rows
};

// y = value everywhere (const-set); integers truncate
struct FillArgs {
  View y;
  double value = 0;
};

enum class GateOp : uint8_t { silu, gelu, gelu_erf, relu, sigmoid };

// y = act(gate) * up: SwiGLU (Shazeer 2020, "GLU Variants Improve Transformer") and its kin
struct GatedArgs {
  GateOp op;
  View gate, up, y;  // (rows, dim), rows may be strided
};

}  // namespace rbee
