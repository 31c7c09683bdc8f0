#include "rbee/nn/linear.h"

#include "rbee/ops/elementwise.h"

namespace rbee::nn {

Linear::Linear(const WeightScope& scope, const LinearShape& shape) {
  const int64_t total = shape.total_rows > 0 ? shape.total_rows : shape.out;
  weights_.weight = scope.matrix(
      "weight", {.first = shape.first_row, .count = shape.out, .total = total}, shape.in);
  if (shape.bias == Bias::none) return;
  if (shape.bias == Bias::optional && !scope.has("bias")) return;
  weights_.bias = scope.vector("bias", total).slice(Axis{0}, shape.first_row, shape.out);
}

Tensor Linear::over_last(const Tensor& x) const {
  const int64_t in = x.dim(-1);
  Shape shape = x.shape();
  const int64_t rows = in == 0 ? 0 : x.numel() / in;
  const Tensor y = (*this)(contiguous(x).reshape({rows, in}));
  shape[shape.rank() - 1] = y.dim(1);
  return y.reshape(shape);
}

}  // namespace rbee::nn
