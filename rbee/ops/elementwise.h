#pragma once
// Element-wise operations. Binary forms broadcast (NumPy's rule) and need one dtype.

#include "backends/api/args_elementwise.h"
#include "rbee/tensor/tensor.h"

namespace rbee {

// mul * x + add in x's dtype; integers: computed in double, truncated, saturated
Tensor affine(const Tensor& x, double mul, double add);
// Integer types have abs, neg, relu, sign and sqr (modulo 2^bits); float types all but elu and
// powf.
Tensor unary(UnaryOp op, const Tensor& x);
Tensor elu(const Tensor& x, double alpha);      // x > 0 ? x : alpha * (exp(x) - 1); float types
Tensor powf(const Tensor& x, double exponent);  // float types
// Integers: add, sub and mul modulo 2^bits; div truncates, by zero gives 0. minimum and maximum
// of a NaN are NaN.
Tensor binary(BinaryOp op, const Tensor& a, const Tensor& b);
// y += x in place, any strides, one shape and dtype; integers modulo 2^bits
void add_(Tensor& y, const Tensor& x);
Tensor compare(CompareOp op, const Tensor& a, const Tensor& b);  // u8, 0 or 1
// cond != 0 ? a : b; cond: any integer dtype
Tensor where(const Tensor& cond, const Tensor& a, const Tensor& b);
// x as `dtype`, or x itself if it has that type. Float to integer truncates and saturates, NaN
// gives 0; integer to integer keeps the low bits. x may have a block type when `dtype` is a float
// type (rbee/quant has the other direction).
Tensor cast(const Tensor& x, DType dtype);

Tensor contiguous(const Tensor& x);      // x itself if it is contiguous
void copy_(Tensor& y, const Tensor& x);  // y = x, any strides, one shape and dtype
void fill_(Tensor& y, double value);     // any strides; integers truncate and saturate
// dst[r * dst_stride + c] = src[r * src_stride + c] for r < rows, c < cols; both of rank 1 and
// contiguous, strides in elements, dst_stride >= cols.
void copy2d_(Tensor& dst, const Tensor& src, int64_t rows, int64_t cols, int64_t dst_stride,
             int64_t src_stride);

inline Tensor operator+(const Tensor& a, const Tensor& b) {
  return binary(BinaryOp::add, a, b);
}
inline Tensor operator-(const Tensor& a, const Tensor& b) {
  return binary(BinaryOp::sub, a, b);
}
inline Tensor operator*(const Tensor& a, const Tensor& b) {
  return binary(BinaryOp::mul, a, b);
}
inline Tensor operator/(const Tensor& a, const Tensor& b) {
  return binary(BinaryOp::div, a, b);
}

}  // namespace rbee
