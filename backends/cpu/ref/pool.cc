#include "backends/cpu/ref/conv.h"
#include "backends/cpu/ref/loop.h"
#include "backends/cpu/ref/number.h"

namespace rbee::cpu {
namespace {

template <typename T>
T window_mean(const Pool2dArgs& args, const T* x) {
  double sum = 0;
  for (int64_t i = 0; i < args.kernel_h; ++i) {
    for (int64_t j = 0; j < args.kernel_w; ++j) {
      sum += static_cast<double>(load(x[offset_of(args.x, 0, 0, i, j)]));
    }
  }
  return store<T>(sum / static_cast<double>(args.kernel_h * args.kernel_w));
}

template <typename T>
T window_max(const Pool2dArgs& args, const T* x) {
  T top = x[0];
  for (int64_t i = 0; i < args.kernel_h; ++i) {
    for (int64_t j = 0; j < args.kernel_w; ++j) {
      const T value = x[offset_of(args.x, 0, 0, i, j)];
      // NaN, which differs from itself, wins and stays.
      if (load(value) > load(top) || load(value) != load(value)) top = value;
    }
  }
  return top;
}

// Calls window(first element of the window) for each element of y and writes what it returns.
template <typename T, typename Window>
void for_each_window(const Pool2dArgs& args, Window&& window) {
  View corners = args.x;  // of the windows
  corners.strides[2] *= args.stride_h;
  corners.strides[3] *= args.stride_w;
  for_each([&](int64_t to, int64_t from) { args.y.as<T>()[to] = window(args.x.as<T>() + from); },
           args.y, corners);
}

void pool2d(const Pool2dArgs& args, Stream&) {
  if (args.op == PoolOp::max) {
    return dispatch_numbers("pool2d", args.x.dtype, [&]<typename T>() {
      for_each_window<T>(args, [&](const T* x) { return window_max(args, x); });
    });
  }
  dispatch_numbers("pool2d", args.x.dtype, [&]<typename T>() {
    for_each_window<T>(args, [&](const T* x) { return window_mean(args, x); });
  });
}

}  // namespace

const Impl<Pool2dArgs> ref_pool2d = {"ref", never_refuse, pool2d};

}  // namespace rbee::cpu
