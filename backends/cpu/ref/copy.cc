#include "backends/cpu/ref/elementwise.h"
#include "backends/cpu/ref/loop.h"
#include "backends/cpu/ref/number.h"

namespace rbee::cpu {
namespace {

void run_copy(const CopyArgs& args, Stream&) {
  dispatch_sizes("copy", args.y.dtype, [&]<typename T>() {
    const T* x = args.x.as<const T>();
    T* y = args.y.as<T>();
    for_each([&](int64_t at_y, int64_t at_x) { y[at_y] = x[at_x]; }, args.y, args.x);
  });
}

void run_copy2d(const Copy2dArgs& args, Stream&) {
  dispatch_sizes("copy2d", args.dst.dtype, [&]<typename T>() {
    const T* src = args.src.as<const T>();
    T* dst = args.dst.as<T>();
    for (int64_t r = 0; r < args.rows; ++r) {
      for (int64_t c = 0; c < args.cols; ++c) {
        dst[r * args.dst_stride + c] = src[r * args.src_stride + c];
      }
    }
  });
}

void run_fill(const FillArgs& args, Stream&) {
  dispatch_numbers("fill", args.y.dtype, [&]<typename T>() {
    T* y = args.y.as<T>();
    const T value = store<T>(args.value);
    for_each([&](int64_t at) { y[at] = value; }, args.y);
  });
}

}  // namespace

const Impl<CopyArgs> ref_copy = {"ref", never_refuse<CopyArgs>, run_copy};
const Impl<Copy2dArgs> ref_copy2d = {"ref", never_refuse<Copy2dArgs>, run_copy2d};
const Impl<FillArgs> ref_fill = {"ref", never_refuse<FillArgs>, run_fill};

}  // namespace rbee::cpu
