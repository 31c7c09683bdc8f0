#pragma once
// The checks that operations share. Messages carry both values; all throw invalid_argument.

#include "backends/api/kernel_table.h"
#include "rbee/tensor/tensor.h"

namespace rbee {

inline void check_defined(const char* op, const char* name, const Tensor& x) {
  check(x.defined(), op, name, " is undefined");
}

// x is given and stored as plain numbers.
inline void check_plain(const char* op, const char* name, const Tensor& x) {
  check_defined(op, name, x);
  check(!is_quantized(x.dtype()) && x.packing() == 0, op, name, " is ", x,
        "; this needs plain numbers, cast it first");
}

inline void check_float(const char* op, const char* name, const Tensor& x) {
  check_defined(op, name, x);
  check(is_float(x.dtype()), op, name, " is ", x, ", not a float type");
}

inline void check_integer(const char* op, const char* name, const Tensor& x) {
  check_defined(op, name, x);
  check(is_integer(x.dtype()), op, name, " is ", x, ", not an integer type");
}

inline void check_same_device(const char* op, const char* name_a, const Tensor& a,
                              const char* name_b, const Tensor& b) {
  check_defined(op, name_a, a);
  check_defined(op, name_b, b);
  check(&a.device() == &b.device(), op, name_a, " is ", a, ", ", name_b, " is ", b);
}

inline void check_same_dtype(const char* op, const char* name_a, const Tensor& a,
                             const char* name_b, const Tensor& b) {
  check(a.dtype() == b.dtype(), op, name_a, " is ", a, ", ", name_b, " is ", b);
}

// b has a's device and dtype.
inline void check_like(const char* op, const char* name_a, const Tensor& a, const char* name_b,
                       const Tensor& b) {
  check_same_device(op, name_a, a, name_b, b);
  check_same_dtype(op, name_a, a, name_b, b);
}

// x has exactly this shape.
inline void check_shape(const char* op, const char* name, const Tensor& x, const Shape& wanted) {
  check_defined(op, name, x);
  check(x.shape() == wanted, op, name, " is ", x, ", wanted (", wanted, ")");
}

inline void check_rank(const char* op, const char* name, const Tensor& x, int rank) {
  check_defined(op, name, x);
  check(x.rank() == rank, op, name, " is ", x, ", wanted ", rank, " axes");
}

// The non-negative axis of x.
inline int check_axis(const char* op, const char* name, const Tensor& x, Axis axis) {
  check_defined(op, name, x);
  const int i = axis.resolve(x.rank());
  check(i >= 0, op, "axis ", axis.index, " is outside of ", name, ", ", x);
  return i;
}

// Each element of y, which an operation writes in place, has its own address.
inline void check_writable(const char* op, const char* name, const Tensor& y) {
  check_defined(op, name, y);
  for (int i = 0; i < y.rank(); ++i) {
    check(y.dim(i) <= 1 || y.strides()[i] != 0, op, name, " is ", y, ", broadcast along axis ", i);
  }
}

inline const KernelTable& kernels(const Tensor& x) {
  return x.device().kernels();
}

// The view of an optional operand; data is null when it is undefined.
inline View view_or_absent(const Tensor& x) {
  return x.defined() ? x.view() : View{};
}

}  // namespace rbee
