#pragma once

#include "rbee/nn/weight_scope.h"
#include "rbee/ops/embedding.h"

namespace rbee::nn {

// y = table[ids] * scale; ids: (n) i32, y: (n, dim) in the scope's activations
class Embedding {
 public:
  Embedding() = default;
  // Takes "weight" (vocab, dim) and leaves it as stored and in place.
  Embedding(const WeightScope& scope, int64_t vocab, int64_t dim, float scale = 1)
      : table_(scope.table("weight", Shape{vocab, dim})),
        scale_(scale),
        activations_(scope.activations()) {}

  Tensor operator()(const Tensor& ids) const {
    return embedding(ids, table_, scale_, activations_);
  }

 private:
  Tensor table_;
  float scale_ = 1;
  DType activations_ = DType::f32;
};

// Rows of x: (n, dim) picked by rows: (m) i32, as (m, dim).
inline Tensor take_rows(const Tensor& x, const Tensor& rows) {
  return embedding(rows, x, 1.0f, x.dtype());
}

}  // namespace rbee::nn
