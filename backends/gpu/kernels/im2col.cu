// Windows of convolutions as rows, and rows added to windows: one result a thread, neighbouring
// threads along a row. Limited by memory.
#include "backends/gpu/kernels/planes.h"
#include "backends/gpu/tile.h"
#include "backends/shared/im2col_params.h"

namespace rbee {
namespace gpu {

// Splits off an index along an axis of this size from an index over all axes.
RB_DEVICE i64 take_axis(i64& rest, const Divider& size) {
  const i64 above = divide_any(rest, size);
  const i64 here = rest - above * size.divisor;
  rest = above;
  return here;
}

// T: an unsigned integer of the elements' size.
template <class T>
RB_DEVICE void im2col(const Im2colParams& p) {
  const i64 index = p.first + grid_thread();
  if (index >= p.count) return;
  i64 rest = index;
  const i64 tap_column = take_axis(rest, p.kernel_width);
  const i64 tap_row = take_axis(rest, p.kernel_height);
  const i64 channel = take_axis(rest, p.channels);
  const i64 out_column = take_axis(rest, p.out_width);
  const i64 out_row = take_axis(rest, p.out_height);
  const i64 row = out_row * p.stride[0] - p.padding[0] + tap_row * p.dilation[0];
  const i64 column = out_column * p.stride[1] - p.padding[1] + tap_column * p.dilation[1];
  const bool inside = row >= 0 && row < p.size[0] && column >= 0 && column < p.size[1];
  const i64 from = rest * p.x_strides[0] + channel * p.x_strides[1] + row * p.x_strides[2] +
                   column * p.x_strides[3];
  const i64 element =
      (channel * p.kernel_height.divisor + tap_row) * p.kernel_width.divisor + tap_column;
  const i64 to = rest * p.y_strides[0] +
                 (out_row * p.out_width.divisor + out_column) * p.y_strides[1] +
                 element * p.y_strides[2];
  static_cast<T*>(p.y)[to] = inside ? static_cast<const T*>(p.x)[from] : T(0);
}

template <class T>
RB_DEVICE void col2im1d(const Col2im1dParams& p) {
  using C = typename SumOf<Compute<T>>::type;
  i64 rest = p.first + grid_thread();
  if (rest >= p.count) return;
  const i64 at = take_axis(rest, p.out_length);
  const i64 channel = take_axis(rest, p.channels);
  const T* x = static_cast<const T*>(p.x) + rest * p.x_strides[0] + channel * p.x_strides[2];
  C sum = 0;
  i64 window = at / p.stride;
  for (i64 tap = at - window * p.stride; tap < p.kernel && window >= 0; tap += p.stride, --window) {
    if (window >= p.length) continue;
    sum += static_cast<C>(load_value(x[window * p.x_strides[1] + tap * p.x_strides[3]]));
  }
  const i64 to = rest * p.y_strides[0] + channel * p.y_strides[1] + at * p.y_strides[2];
  static_cast<T*>(p.y)[to] = convert<T>(sum);
}

#define RB_IM2COL(bytes, T) RB_KERNEL(im2col_##bytes, kPlaneThreads, Im2colParams, (im2col<T>(p)))
#define RB_COL2IM(dtype, T) \
  RB_KERNEL(col2im1d_##dtype, kPlaneThreads, Col2im1dParams, (col2im1d<T>(p)))
RB_IM2COL(b1, u8)
RB_IM2COL(b2, u16)
RB_IM2COL(b4, u32)
RB_IM2COL(b8, u64)
RB_EACH_PLAIN(RB_COL2IM)

}  // namespace gpu
}  // namespace rbee
