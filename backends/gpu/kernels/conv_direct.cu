// Convolutions and transposed convolutions of every dtype with any strides: one result a thread,
// neighbouring threads along a row of pixels. Limited by the loads of x, which caches serve.
#include "backends/gpu/kernels/planes.h"
#include "backends/shared/conv_params.h"

namespace rbee {
namespace gpu {

// The first tap that links output index `to` with an input index, and that index, which may be
// outside of the input.
struct Tap {
  i64 tap, from;

  RB_DEVICE Tap(const ConvAxis& axis, i64 to, bool transposed)
      : tap(0), from(to * axis.stride - axis.padding) {
    if (!transposed) return;
    for (; tap < axis.kernel && tap < axis.tap_step; ++tap) {
      const i64 scaled = to + axis.padding - tap * axis.dilation;
      if (scaled % axis.stride != 0) continue;
      from = scaled / axis.stride;
      return;
    }
    tap = axis.kernel;  // none
  }
  RB_DEVICE void next(const ConvAxis& axis) {
    tap += axis.tap_step;
    from += axis.from_step;
  }
  RB_DEVICE bool inside(const ConvAxis& axis) const { return from >= 0 && from < axis.size; }
};

// The products of one tap with the input channels of a group.
template <class T, class C>
RB_DEVICE C channel_products(const ConvParams& p, const T* x, const T* weight) {
  C sum = 0;
#pragma unroll 4
  for (i32 k = 0; k < p.group_in; ++k) {
    sum += static_cast<C>(load_value(x[k * p.x_strides[1]])) *
           static_cast<C>(load_value(weight[k * p.weight_in]));
  }
  return sum;
}

template <class T>
RB_DEVICE void conv_direct(const ConvParams& p) {
  using C = typename SumOf<Compute<T>>::type;
  const i64 index = p.first + grid_thread();
  if (index >= p.count) return;
  const Pixel to(index, p.out_channels, p.out_height, p.out_width);
  const i64 group = divide_any(to.channel, p.group_out);
  const i64 out = to.channel - group * p.group_out.divisor;
  const T* x =
      static_cast<const T*>(p.x) + to.image * p.x_strides[0] + group * p.group_in * p.x_strides[1];
  const T* weight = static_cast<const T*>(p.weight) + group * p.weight_group + out * p.weight_out;
  C sum = 0;
  if (p.bias != nullptr) {
    sum = static_cast<C>(load_value(static_cast<const T*>(p.bias)[to.channel * p.bias_step]));
  }
  for (Tap i(p.height, to.row, p.transposed != 0); i.tap < p.height.kernel; i.next(p.height)) {
    if (!i.inside(p.height)) continue;
    const T* x_row = x + i.from * p.x_strides[2];
    const T* weight_row = weight + i.tap * p.weight_row;
    for (Tap j(p.width, to.column, p.transposed != 0); j.tap < p.width.kernel; j.next(p.width)) {
      if (!j.inside(p.width)) continue;
      sum += channel_products<T, C>(p, x_row + j.from * p.x_strides[3],
                                    weight_row + j.tap * p.weight_column);
    }
  }
  static_cast<T*>(p.y)[to.offset(p.y_strides)] = store_value<T>(static_cast<Compute<T>>(sum));
}

#define RB_CONV(dtype, T) \
  RB_KERNEL(conv_direct_##dtype, kPlaneThreads, ConvParams, (conv_direct<T>(p)))
RB_EACH_PLAIN(RB_CONV)

}  // namespace gpu
}  // namespace rbee
