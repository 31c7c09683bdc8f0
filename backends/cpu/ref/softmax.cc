#include "backends/cpu/ref/softmax.h"

#include <algorithm>

#include "backends/cpu/ref/loop.h"
#include "backends/cpu/ref/number.h"

namespace rbee::cpu {
namespace {

// Elements `step` apart. The largest is subtracted so that exp does not overflow.
template <typename T>
void softmax_row(const T* x, int64_t x_step, T* y, int64_t y_step, int64_t dim) {
  double top = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < dim; ++i) {
    top = std::max(top, static_cast<double>(load(x[i * x_step])));
  }
  double sum = 0;
  for (int64_t i = 0; i < dim; ++i) sum += std::exp(load(x[i * x_step]) - top);
  for (int64_t i = 0; i < dim; ++i) {
    y[i * y_step] = store<T>(std::exp(load(x[i * x_step]) - top) / sum);
  }
}

void run_softmax(const SoftmaxArgs& args, Stream&) {
  const View &x = args.x, &y = args.y;
  dispatch_floats("softmax", x.dtype, [&]<typename T>() {
    for_each(
        [&](int64_t at_x, int64_t at_y) {
          softmax_row(x.as<const T>() + at_x, x.stride(-1), y.as<T>() + at_y, y.stride(-1),
                      x.size(-1));
        },
        rows_of(x), rows_of(y));
  });
}

}  // namespace

const Impl<SoftmaxArgs> ref_softmax = {"ref", never_refuse<SoftmaxArgs>, run_softmax};

}  // namespace rbee::cpu
