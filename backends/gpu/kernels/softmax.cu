// y = softmax(x) over rows: a wave a row if registers can hold it, else a block a row, which
// reads the row twice. Memory limits it. f64 in double, everything else in float.
#include "backends/gpu/portable.h"
#include "backends/shared/softmax_params.h"

namespace rbee {
namespace gpu {

constexpr int kThreads = 256;
constexpr int kPerLane = 16;  // elements that a lane keeps; kWaveDim in ops/softmax.cc

template <class C>
RB_DEVICE C lowest() {
  return -C(infinity());
}

// The largest value so far, and the sum of exp(value - largest). A NaN or an infinity makes the sum
// NaN, as in the reference; values of -infinity add nothing until a larger one comes.
template <class C>
struct Partial {
  C top;
  C sum;

  RB_DEVICE void take(C x) {
    if (x > top) {
      sum *= exp(top - x);
      top = x;
    }
    if (x != lowest<C>()) sum += exp(x - top);
  }
};

// A sum relative to `top`, converted to `new_top`.
template <class C>
RB_DEVICE C rescaled(Partial<C> part, C new_top) {
  return part.top == new_top ? part.sum : part.sum * exp(part.top - new_top);
}

template <class T, int kWave>
RB_DEVICE void softmax_wave(const SoftmaxParams& p) {
  using C = Compute<T>;
  const i64 row = static_cast<i64>(block_x()) * (kThreads / kWave) + thread_x() / kWave;
  if (row >= p.rows) return;  // whole waves leave
  const int lane = static_cast<int>(thread_x() % kWave);
  const int dim = static_cast<int>(p.dim);
  const T* x = static_cast<const T*>(p.x) + row_start(p.x_rows, row);
  T* y = static_cast<T*>(p.y) + row_start(p.y_rows, row);
  C values[kPerLane];
  C top = lowest<C>();
#pragma unroll
  for (int k = 0; k < kPerLane; ++k) {
    const int i = k * kWave + lane;
    values[k] = i < dim ? load_value(x[i * p.x_rows.step]) : lowest<C>();
    top = values[k] > top ? values[k] : top;
  }
  top = wave_max<kWave>(top);
  C sum = 0;
#pragma unroll
  for (int k = 0; k < kPerLane; ++k) {
    if (k * kWave + lane >= dim) break;
    values[k] = exp(values[k] - top);
    sum += values[k];
  }
  const C scale = C(1) / wave_sum<kWave>(sum);
#pragma unroll
  for (int k = 0; k < kPerLane; ++k) {
    const int i = k * kWave + lane;
    if (i < dim) y[i * p.y_rows.step] = store_value<T>(values[k] * scale);
  }
}

template <class T, int kWave>
RB_DEVICE void softmax_block(const SoftmaxParams& p) {
  using C = Compute<T>;
  RB_SHARED C slots[kThreads / kWave];
  const i64 row = block_x();
  const T* x = static_cast<const T*>(p.x) + row_start(p.x_rows, row);
  T* y = static_cast<T*>(p.y) + row_start(p.y_rows, row);
  Partial<C> part = {lowest<C>(), C(0)};
#pragma unroll 4
  for (i64 i = thread_x(); i < p.dim; i += kThreads) part.take(load_value(x[i * p.x_rows.step]));
  const C top = block_max<kWave, kThreads>(part.top, slots);
  const C scale = C(1) / block_sum<kWave, kThreads>(rescaled(part, top), slots);
#pragma unroll 4
  for (i64 i = thread_x(); i < p.dim; i += kThreads) {
    const C value = exp(load_value(x[i * p.x_rows.step]) - top);
    y[i * p.y_rows.step] = store_value<T>(value * scale);
  }
}

#define RB_SOFTMAX(lanes, wave, dtype, T)                                                        \
  RB_KERNEL(softmax_wave_##dtype##_##wave, kThreads, SoftmaxParams, (softmax_wave<T, lanes>(p))) \
  RB_KERNEL(softmax_block_##dtype##_##wave, kThreads, SoftmaxParams, (softmax_block<T, lanes>(p)))
#define RB_SOFTMAX_WAVES(dtype, T) RB_WAVES(RB_SOFTMAX, dtype, T)
RB_EACH_FLOAT_TYPE(RB_SOFTMAX_WAVES)

}  // namespace gpu
}  // namespace rbee
