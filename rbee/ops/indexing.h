#pragma once
// Indexing along one axis, as in PyTorch. ids are u8, u32, i16, i32 or i64. Negative ids and the
// largest value of their type mean "no element": reads give 0, writes are skipped. If the host can
// read ids, any other id out of range throws invalid_argument naming it; on other devices the
// caller must not pass one. Data are of any plain dtype and may be strided.

#include "rbee/tensor/tensor.h"

namespace rbee {

// y[.., i, ..] = x[.., ids[.., i, ..], ..] along `axis`
//   ids: x's rank; along other axes no larger than x   result: ids' shape
Tensor gather(const Tensor& x, Axis axis, const Tensor& ids);

// x with x[.., ids[.., i, ..], ..] = (or +=) src[.., i, ..] along `axis`. Of equal ids the last one
// wins; sums of equal ids are rounded after each element.
//   ids, src: one shape of x's rank; along other axes no larger than x   src: x's dtype
Tensor scatter(const Tensor& x, Axis axis, const Tensor& ids, const Tensor& src);
Tensor scatter_add(const Tensor& x, Axis axis, const Tensor& ids, const Tensor& src);

// The slices ids[0], ids[1], ... of x along `axis`; ids: (n)
Tensor index_select(const Tensor& x, Axis axis, const Tensor& ids);

// x with slice ids[i] += slice i of src along `axis`
//   ids: (n)   src: x's shape with n along `axis`, x's dtype
Tensor index_add(const Tensor& x, Axis axis, const Tensor& ids, const Tensor& src);

}  // namespace rbee
