#include "backends/cpu/ref/rms_norm.h"

#include "backends/cpu/ref/loop.h"
#include "backends/cpu/ref/number.h"

namespace rbee::cpu {
namespace {

template <typename T>
double inverse_rms(const T* x, int64_t step, int64_t dim, float eps) {
  double squares = 0;
  for (int64_t i = 0; i < dim; ++i) {
    const double value = load(x[i * step]);
    squares += value * value;
  }
  return 1 / std::sqrt(squares / static_cast<double>(dim) + static_cast<double>(eps));
}

template <typename T>
void normalize_row(const T* x, int64_t x_step, const View& weight, T* y, int64_t y_step,
                   float eps) {
  const int64_t dim = weight.sizes[0];
  const double scale = inverse_rms(x, x_step, dim, eps);
  for (int64_t i = 0; i < dim; ++i) {
    const double value = load(x[i * x_step]) * scale;
    y[i * y_step] =
        store<T>(value * static_cast<double>(load(weight.as<T>()[i * weight.strides[0]])));
  }
}

void run_rms_norm(const RmsNormArgs& args, Stream&) {
  dispatch_floats("rms_norm", args.x.dtype, [&]<typename T>() {
    const auto row = [&](int64_t x, int64_t y) {
      normalize_row(args.x.as<T>() + x, args.x.stride(-1), args.weight, args.y.as<T>() + y,
                    args.y.stride(-1), args.eps);
    };
    for_each(row, rows_of(args.x), rows_of(args.y));
  });
}

void run_add_rms_norm(const AddRmsNormArgs& args, Stream&) {
  dispatch_floats("add_rms_norm", args.x.dtype, [&]<typename T>() {
    const auto add = [&](int64_t x, int64_t residual, int64_t sum) {
      args.sum.as<T>()[sum] =
          store<T>(load(args.x.as<T>()[x]) + load(args.residual.as<T>()[residual]));
    };
    for_each(add, args.x, args.residual, args.sum);
    const auto row = [&](int64_t sum, int64_t y) {
      normalize_row(args.sum.as<T>() + sum, args.sum.stride(-1), args.weight, args.y.as<T>() + y,
                    args.y.stride(-1), args.eps);
    };
    for_each(row, rows_of(args.sum), rows_of(args.y));
  });
}

}  // namespace

const Impl<RmsNormArgs> ref_rms_norm{"ref", never_refuse, run_rms_norm};
const Impl<AddRmsNormArgs> ref_add_rms_norm{"ref", never_refuse, run_add_rms_norm};

}  // namespace rbee::cpu
