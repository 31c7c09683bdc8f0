#include "rbee/nn/linear.h"

#include "rbee/ops/elementwise.h"
#include "rbee/ops/fused_linear.h"

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

Tensor Linear::onto(const Tensor& residual, const Tensor& x) const {
  const int64_t in = x.dim(-1), out = residual.dim(-1);
  const Tensor rows = contiguous(x).reshape({in == 0 ? 0 : x.numel() / in, in});
  const Tensor onto = residual.reshape({rows.dim(0), out});
  if (std::optional<Tensor> sum = linear_onto(rows, weights_, onto)) {
    return sum->reshape(residual.shape());
  }
  return residual + (*this)(rows).reshape(residual.shape());
}

}  // namespace rbee::nn
