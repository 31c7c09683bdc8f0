// y = x / sqrt(mean(x^2) + eps) * weight, x optionally x + residual; one block a row.
#include "backends/gpu/portable.h"
#include "backends/shared/norm_params.h"

namespace rbee {
namespace gpu {

constexpr int kThreads = 256;

// f64 sums in double, everything else in float.
template <class T, int kWave>
RB_DEVICE void rms_norm(const RmsNormParams& p) {
  using C = Compute<T>;
  RB_SHARED C slots[kThreads / kWave];
  const i64 row = block_x();
  const T* x = static_cast<const T*>(p.x) + row_start(p.x_rows, row);
  const T* weight = static_cast<const T*>(p.weight);
  T* y = static_cast<T*>(p.y) + row_start(p.y_rows, row);
  C squares = 0;
  if (p.residual != nullptr) {
    const T* residual = static_cast<const T*>(p.residual) + row_start(p.residual_rows, row);
    T* sum = static_cast<T*>(p.sum) + row_start(p.sum_rows, row);
    for (i64 i = thread_x(); i < p.dim; i += kThreads) {
      const T total = store_value<T>(load_value(x[i * p.x_rows.step]) +
                                     load_value(residual[i * p.residual_rows.step]));
      sum[i * p.sum_rows.step] = total;
      squares += load_value(total) * load_value(total);
    }
  } else {
    for (i64 i = thread_x(); i < p.dim; i += kThreads) {
      const C value = load_value(x[i * p.x_rows.step]);
      squares += value * value;
    }
  }
  squares = block_sum<kWave, kThreads>(squares, slots);
  const C scale = C(1) / sqrt(squares / static_cast<C>(p.dim) + static_cast<C>(p.eps));
  // A thread reads back only what it wrote itself.
  const T* from =
      p.residual != nullptr ? static_cast<const T*>(p.sum) + row_start(p.sum_rows, row) : x;
  const i64 step = p.residual != nullptr ? p.sum_rows.step : p.x_rows.step;
  for (i64 i = thread_x(); i < p.dim; i += kThreads) {
    y[i * p.y_rows.step] =
        store_value<T>(load_value(from[i * step]) * scale * load_value(weight[i * p.weight_step]));
  }
}

// Rows of 16-byte packs; a thread keeps its part in registers, so each row is read once.
template <class T, int kWave, int kPacks>
RB_DEVICE void rms_norm_packed(const RmsNormParams& p) {
  RB_SHARED float slots[kThreads / kWave];
  constexpr int kCount = Pack<T>::kCount;
  const i64 row = block_x();
  const T* x = static_cast<const T*>(p.x) + row_start(p.x_rows, row);
  const T* residual = static_cast<const T*>(p.residual);
  if (residual != nullptr) residual += row_start(p.residual_rows, row);
  T* y = static_cast<T*>(p.y) + row_start(p.y_rows, row);
  const int packs = static_cast<int>(p.dim / kCount);
  float values[kPacks][kCount];
  float squares = 0;
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    const int at = k * kThreads + static_cast<int>(thread_x());
    if (at >= packs) break;
    Pack<T> in = load128(x + at * kCount);
    if (residual != nullptr) {
      const Pack<T> other = load128(residual + at * kCount);
      for (int i = 0; i < kCount; ++i) {
        in.values[i] = store_value<T>(load_value(in.values[i]) + load_value(other.values[i]));
      }
      store128(static_cast<T*>(p.sum) + row_start(p.sum_rows, row) + at * kCount, in);
    }
    for (int i = 0; i < kCount; ++i) {
      values[k][i] = load_value(in.values[i]);
      squares += values[k][i] * values[k][i];
    }
  }
  squares = block_sum<kWave, kThreads>(squares, slots);
  const float scale = 1.0f / sqrt(squares / static_cast<float>(p.dim) + p.eps);
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    const int at = k * kThreads + static_cast<int>(thread_x());
    if (at >= packs) break;
    const Pack<T> weight = load128(static_cast<const T*>(p.weight) + at * kCount);
    Pack<T> out;
    for (int i = 0; i < kCount; ++i) {
      out.values[i] = store_value<T>(values[k][i] * scale * load_value(weight.values[i]));
    }
    store128(y + at * kCount, out);
  }
}

#define RB_ANY(lanes, wave, dtype, T) \
  RB_KERNEL(rms_norm_##dtype##_##wave, kThreads, RmsNormParams, (rms_norm<T, lanes>(p)))
#define RB_ANY_WAVE(dtype, T) RB_WAVES(RB_ANY, dtype, T)
RB_EACH_FLOAT_TYPE(RB_ANY_WAVE)

// Up to kPacks * 256 packs a row.
#define RB_PACKED(lanes, wave, dtype, T)                                \
  RB_KERNEL(rms_norm_##dtype##_packed1_##wave, kThreads, RmsNormParams, \
            (rms_norm_packed<T, lanes, 1>(p)))                          \
  RB_KERNEL(rms_norm_##dtype##_packed4_##wave, kThreads, RmsNormParams, \
            (rms_norm_packed<T, lanes, 4>(p)))
#define RB_PACKED_WAVE(dtype, T) RB_WAVES(RB_PACKED, dtype, T)
RB_EACH_FLOAT(RB_PACKED_WAVE)

}  // namespace gpu
}  // namespace rbee
