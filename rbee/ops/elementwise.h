#pragma once
// Element-wise operations. Binary forms broadcast (NumPy's rule) and need one dtype.

#include "backends/api/args_elementwise.h"
#include "rbee/tensor/tensor.h"

namespace rbee {

Tensor affine(const Tensor& x, double mul, double add);  // mul * x + add
Tensor unary(UnaryOp op, const Tensor& x);               // not elu, not powf
Tensor elu(const Tensor& x, double alpha);
Tensor powf(const Tensor& x, double exponent);
Tensor binary(BinaryOp op, const Tensor& a, const Tensor& b);
Tensor compare(CompareOp op, const Tensor& a, const Tensor& b);  // u8, 0 or 1
// cond != 0 ? a : b; cond: any integer dtype
Tensor where(const Tensor& cond, const Tensor& a, const Tensor& b);
// x as `dtype`. float to integer truncates and saturates; NaN gives 0. To and from block types too.
Tensor cast(const Tensor& x, DType dtype);
Tensor contiguous(const Tensor& x);      // x itself when it is
void copy_(Tensor& y, const Tensor& x);  // y = x, any strides, one shape and dtype
void fill_(Tensor& y, double value);     // const-set, any strides
// Rows of `cols` elements between rank-1 tensors with row distances in elements.
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
