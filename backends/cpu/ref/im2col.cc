#include "backends/cpu/ref/conv.h"
#include "backends/cpu/ref/loop.h"
#include "backends/cpu/ref/number.h"

namespace rbee::cpu {
namespace {

// Element `element` of window `window` in an image: null in the padding.
template <typename T>
const T* source(const Im2colArgs& args, const T* image, int64_t window, int64_t element) {
  const int64_t taps = args.kernel_h * args.kernel_w;
  const int64_t row = window / args.out_w * args.stride_h - args.padding_h +
                      element % taps / args.kernel_w * args.dilation_h;
  const int64_t column = window % args.out_w * args.stride_w - args.padding_w +
                         element % args.kernel_w * args.dilation_w;
  if (row < 0 || row >= args.x.sizes[2] || column < 0 || column >= args.x.sizes[3]) return nullptr;
  return image + offset_of(args.x, 0, element / taps, row, column);
}

void im2col(const Im2colArgs& given, Stream&) {
  Im2colArgs args = given;
  if (args.x.rank == 3) args.x = with_axis(args.x, 2);
  const View& y = args.y;
  dispatch_sizes("im2col", y.dtype, [&]<typename T>() {
    for (int64_t n = 0; n < y.sizes[0]; ++n) {
      const T* image = args.x.as<T>() + offset_of(args.x, n);
      for (int64_t i = 0; i < y.sizes[1] * y.sizes[2]; ++i) {
        const int64_t window = i / y.sizes[2], element = i % y.sizes[2];
        const T* from = source(args, image, window, element);
        y.as<T>()[offset_of(y, n, window, element)] = from != nullptr ? *from : T{};
      }
    }
  });
}

// Sums go through the windows from the last to the first that reaches a place.
void col2im1d(const Col2im1dArgs& args, Stream&) {
  const View &x = args.x, &y = args.y;
  dispatch_numbers("col2im1d", y.dtype, [&]<typename T>() {
    for (int64_t i = 0; i < y.numel(); ++i) {
      const int64_t at = i % y.sizes[2], c = i / y.sizes[2] % y.sizes[1];
      const int64_t n = i / y.sizes[2] / y.sizes[1];
      Sum<T> sum = 0;
      for (int64_t k = at % args.stride; k < x.sizes[3] && k <= at; k += args.stride) {
        const int64_t window = (at - k) / args.stride;
        if (window < x.sizes[1]) sum += load(x.as<T>()[offset_of(x, n, window, c, k)]);
      }
      y.as<T>()[offset_of(y, n, c, at)] = store<T>(sum);
    }
  });
}

}  // namespace

const Impl<Im2colArgs> ref_im2col = {"ref", never_refuse, im2col};
const Impl<Col2im1dArgs> ref_col2im1d = {"ref", never_refuse, col2im1d};

}  // namespace rbee::cpu
