#pragma once

#include "rbee/tensor/tensor.h"

namespace rbee {

// table[ids] * scale, as `dtype`
//   ids: (n) i32; throws invalid_argument naming an id out of range where the host can read ids
//   table: (vocab, dim) plain or block type   result: (n, dim)
Tensor embedding(const Tensor& ids, const Tensor& table, float scale = 1.0f,
                 DType dtype = DType::f32);

}  // namespace rbee
