#include "rbee/ops/sort.h"

#include <limits>

#include "rbee/ops/checks.h"
#include "rbee/ops/run.h"

namespace rbee {

Tensor argsort(const Tensor& x, bool descending) {
  check_plain("argsort", "x", x);
  check(x.rank() >= 1, "argsort", "x is ", x, ", wanted at least 1 axis");
  constexpr int64_t kLimit = std::numeric_limits<uint32_t>::max();
  check(x.dim(-1) <= kLimit, "argsort", "x is ", x, ", longer than a u32 index reaches, ", kLimit);
  Tensor y = empty(x.shape(), DType::u32, x.device());
  const ArgsortArgs args{.x = x.view(), .y = y.view(), .descending = descending};
  run("argsort", kernels(x).argsort, args, x.stream());
  return y;
}

}  // namespace rbee
