// Pooling and upsampling: one result a thread, neighbouring threads along a row. Limited by memory.
#include "backends/gpu/kernels/planes.h"
#include "backends/gpu/tile.h"
#include "backends/shared/conv_params.h"

namespace rbee {
namespace gpu {

// Calls f(value) for every element of a result's window.
template <class T, class F>
RB_DEVICE void each_in_window(const PoolParams& p, const T* x, F f) {
  for (i64 i = 0; i < p.kernel[0]; ++i) {
    for (i64 j = 0; j < p.kernel[1]; ++j) f(x[i * p.x_strides[2] + j * p.x_strides[3]]);
  }
}

template <class T>
RB_DEVICE const T* window_of(const PoolParams& p, const Pixel& to) {
  return static_cast<const T*>(p.x) + to.plane(p.x_strides) +
         to.row * p.stride[0] * p.x_strides[2] + to.column * p.stride[1] * p.x_strides[3];
}

// The type of sums for means: for integers the reference's.
template <class C>
struct MeanOf {
  using type = double;
};
template <>
struct MeanOf<float> {
  using type = float;
};

template <class T>
RB_DEVICE void pool2d_avg(const PoolParams& p) {
  using C = typename MeanOf<Compute<T>>::type;
  const i64 index = p.first + grid_thread();
  if (index >= p.count) return;
  const Pixel to(index, p.channels, p.out_height, p.out_width);
  C sum = 0;
  each_in_window(p, window_of<T>(p, to),
                 [&](T value) { sum += static_cast<C>(load_value(value)); });
  sum /= static_cast<C>(p.kernel[0] * p.kernel[1]);
  static_cast<T*>(p.y)[to.offset(p.y_strides)] = convert<T>(sum);
}

template <class T>
RB_DEVICE void pool2d_max(const PoolParams& p) {
  const i64 index = p.first + grid_thread();
  if (index >= p.count) return;
  const Pixel to(index, p.channels, p.out_height, p.out_width);
  const T* x = window_of<T>(p, to);
  T top = *x;
  each_in_window(p, x, [&](T value) {
    // NaN, which differs from itself, wins and stays.
    const auto number = load_value(value);
    if (number > load_value(top) || number != number) top = value;
  });
  static_cast<T*>(p.y)[to.offset(p.y_strides)] = top;
}

// T: an unsigned integer of the elements' size.
template <class T>
RB_DEVICE void upsample_nearest(const UpsampleParams& p) {
  const i64 index = p.first + grid_thread();
  if (index >= p.count) return;
  const Pixel to(index, p.channels, p.out_height, p.out_width);
  const i64 row = divide_any(to.row * p.in[0], p.out_height);
  const i64 column = divide_any(to.column * p.in[1], p.out_width);
  const i64 from = to.plane(p.x_strides) + row * p.x_strides[2] + column * p.x_strides[3];
  static_cast<T*>(p.y)[to.offset(p.y_strides)] = static_cast<const T*>(p.x)[from];
}

// Two neighbours along an axis and the weight of the second. In double: a float's error would grow
// with the position.
struct Between {
  i64 low, high;
  double weight;

  RB_DEVICE Between(i64 i, i64 in, i64 out, bool align_corners) {
    double at = 0;
    if (!align_corners) {
      const double scale = static_cast<double>(in) / static_cast<double>(out);
      at = (static_cast<double>(i) + 0.5) * scale - 0.5;
      if (at < 0) at = 0;
    } else if (out > 1) {
      at = static_cast<double>(i) * static_cast<double>(in - 1) / static_cast<double>(out - 1);
    }
    low = static_cast<i64>(at);
    if (low > in - 1) low = in - 1;
    high = low + 1 < in ? low + 1 : in - 1;
    weight = at - static_cast<double>(low);
  }
};

template <class T>
RB_DEVICE void upsample_bilinear(const UpsampleParams& p) {
  using C = Compute<T>;
  const i64 index = p.first + grid_thread();
  if (index >= p.count) return;
  const Pixel to(index, p.channels, p.out_height, p.out_width);
  const Between row(to.row, p.in[0], p.out[0], p.align_corners != 0);
  const Between column(to.column, p.in[1], p.out[1], p.align_corners != 0);
  const T* x = static_cast<const T*>(p.x) + to.plane(p.x_strides);
  const auto along_row = [&](i64 i) {
    const C low = load_value(x[i * p.x_strides[2] + column.low * p.x_strides[3]]);
    const C high = load_value(x[i * p.x_strides[2] + column.high * p.x_strides[3]]);
    return low * static_cast<C>(1 - column.weight) + high * static_cast<C>(column.weight);
  };
  const C value = along_row(row.low) * static_cast<C>(1 - row.weight) +
                  along_row(row.high) * static_cast<C>(row.weight);
  static_cast<T*>(p.y)[to.offset(p.y_strides)] = store_value<T>(value);
}

#define RB_AVG(dtype, T) \
  RB_KERNEL(pool2d_##dtype##_avg, kPlaneThreads, PoolParams, (pool2d_avg<T>(p)))
#define RB_MAX(dtype, T) \
  RB_KERNEL(pool2d_##dtype##_max, kPlaneThreads, PoolParams, (pool2d_max<T>(p)))
#define RB_BILINEAR(dtype, T) \
  RB_KERNEL(upsample_##dtype##_bilinear, kPlaneThreads, UpsampleParams, (upsample_bilinear<T>(p)))
#define RB_NEAREST(bytes, T) \
  RB_KERNEL(upsample_nearest_##bytes, kPlaneThreads, UpsampleParams, (upsample_nearest<T>(p)))
RB_EACH_PLAIN(RB_AVG)
RB_EACH_PLAIN(RB_MAX)
RB_EACH_FLOAT_TYPE(RB_BILINEAR)
RB_NEAREST(1, u8)
RB_NEAREST(2, u16)
RB_NEAREST(4, u32)
RB_NEAREST(8, u64)

}  // namespace gpu
}  // namespace rbee
