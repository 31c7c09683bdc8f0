#pragma once

#include "rbee/tensor/tensor.h"

namespace rbee {

// table[ids] * scale, as `dtype`
//   ids: (n) i32; if the host can read ids, one out of range throws invalid_argument
//   table: (vocab, dim) plain or block type   result: (n, dim)
Tensor embedding(const Tensor& ids, const Tensor& table, float scale = 1.0f,
                 DType dtype = DType::f32);

}  // namespace rbee
