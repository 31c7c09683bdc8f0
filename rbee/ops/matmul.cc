#include "rbee/ops/matmul.h"

#include "rbee/ops/checks.h"
#include "rbee/ops/run.h"

namespace rbee {
namespace {

constexpr const char* kOp = "matmul";
constexpr int kMatrixAxes = 2;

Shape batch_of(const Tensor& x) {
  Shape batch;
  for (int i = 0; i + kMatrixAxes < x.rank(); ++i) batch.push_back(x.dim(i));
  return batch;
}

Shape with_matrix(Shape batch, int64_t rows, int64_t columns) {
  batch.push_back(rows);
  batch.push_back(columns);
  return batch;
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  check_plain(kOp, "a", a);
  check_like(kOp, "a", a, "b", b);
  check(a.rank() >= kMatrixAxes && b.rank() >= kMatrixAxes, kOp, "a is ", a, ", b is ", b,
        ", wanted at least ", kMatrixAxes, " axes");
  const int64_t rows = a.dim(-2);
  const int64_t depth = a.dim(-1);
  const int64_t columns = b.dim(-1);
  check(b.dim(-2) == depth, kOp, "a is ", a, ", b is ", b, ": ", depth, " columns meet ", b.dim(-2),
        " rows");
  const Shape batch = broadcast_shapes(batch_of(a), batch_of(b), kOp);
  Tensor y = empty(with_matrix(batch, rows, columns), a.dtype(), a.device());
  const MatmulArgs args{a.broadcast_to(with_matrix(batch, rows, depth)).view(),
                        b.broadcast_to(with_matrix(batch, depth, columns)).view(), y.view()};
  run(kOp, kernels(a).matmul, args, a.stream());
  return y;
}

}  // namespace rbee
