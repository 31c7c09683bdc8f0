#pragma once
// The block types of rbee/core/block_types.h for test tables: tests cover a new row at once.

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "rbee/core/dtype.h"

namespace rbee::test {

// The types that `wanted` accepts, in the table's order.
template <typename Wanted>
std::vector<DType> block_types(Wanted wanted) {
  std::vector<DType> out;
  for (const DType dtype : kAllDTypes) {
    if (is_quantized(dtype) && wanted(dtype)) out.push_back(dtype);
  }
  return out;
}
inline std::vector<DType> block_types() {
  return block_types([](DType) { return true; });
}
inline std::vector<DType> block_types_but(std::initializer_list<DType> left_out) {
  return block_types(
      [&](DType dtype) { return std::ranges::find(left_out, dtype) == left_out.end(); });
}
// Types of few bits, which have kernels of their own on GPUs, and the others.
inline std::vector<DType> usual_block_types() {
  return block_types([](DType dtype) { return !has_few_bits(dtype); });
}
inline std::vector<DType> few_bit_block_types() {
  return block_types(has_few_bits);
}

}  // namespace rbee::test
