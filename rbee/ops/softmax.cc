#include "rbee/ops/softmax.h"

#include "rbee/ops/checks.h"
#include "rbee/ops/run.h"

namespace rbee {

Tensor softmax(const Tensor& x) {
  check_float("softmax", "x", x);
  check(x.rank() >= 1, "softmax", "x is ", x, ", wanted at least 1 axis");
  Tensor y = empty_like(x);
  run("softmax", kernels(x).softmax, SoftmaxArgs{.x = x.view(), .y = y.view()}, x.stream());
  return y;
}

}  // namespace rbee
