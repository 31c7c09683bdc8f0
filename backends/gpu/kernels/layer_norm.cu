// y = (x - mean) / sqrt(variance + eps) * weight + bias; one block a row. Limited by memory.
#include "backends/gpu/portable.h"
#include "backends/shared/norm_params.h"

namespace rbee {
namespace gpu {

constexpr int kThreads = 256;

// f64 in double, everything else in float. A row is read three times; the last two find it in a
// cache.
template <class T, int kWave>
RB_DEVICE void layer_norm(const LayerNormParams& p) {
  using C = Compute<T>;
  RB_SHARED C slots[kThreads / kWave];
  const i64 row = block_x();
  const T* x = static_cast<const T*>(p.x) + row_start(p.x_rows, row);
  const T* weight = static_cast<const T*>(p.weight);
  const T* bias = static_cast<const T*>(p.bias);
  T* y = static_cast<T*>(p.y) + row_start(p.y_rows, row);
  C sum = 0;
  for (i64 i = thread_x(); i < p.dim; i += kThreads) sum += load_value(x[i * p.x_rows.step]);
  const C mean = block_sum<kWave, kThreads>(sum, slots) / static_cast<C>(p.dim);
  C squares = 0;
  for (i64 i = thread_x(); i < p.dim; i += kThreads) {
    const C centred = load_value(x[i * p.x_rows.step]) - mean;
    squares += centred * centred;
  }
  squares = block_sum<kWave, kThreads>(squares, slots);
  const C scale = C(1) / sqrt(squares / static_cast<C>(p.dim) + static_cast<C>(p.eps));
  for (i64 i = thread_x(); i < p.dim; i += kThreads) {
    const C by = weight != nullptr ? load_value(weight[i * p.weight_step]) : C(1);
    const C plus = bias != nullptr ? load_value(bias[i * p.bias_step]) : C(0);
    const C value = (load_value(x[i * p.x_rows.step]) - mean) * scale;
    y[i * p.y_rows.step] = store_value<T>(value * by + plus);
  }
}

// Rows of 16-byte packs, of up to kPacks a thread, which stay in registers: the row is read once.
// Blocks have as many threads as a short row has packs, rounded up to waves.
template <class T, int kWave, int kPacks>
RB_DEVICE void layer_norm_packed(const LayerNormParams& p) {
  RB_SHARED float slots[kThreads / kWave];
  constexpr int kCount = Pack<T>::kCount;
  const i64 row = block_x();
  const T* x = static_cast<const T*>(p.x) + row_start(p.x_rows, row);
  const T* weight = static_cast<const T*>(p.weight);
  const T* bias = static_cast<const T*>(p.bias);
  T* y = static_cast<T*>(p.y) + row_start(p.y_rows, row);
  const int packs = static_cast<int>(p.dim / kCount);
  const auto at = [](int k) { return k * kThreads + static_cast<int>(thread_x()); };
  float values[kPacks][kCount];
  float sum = 0;
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    if (at(k) >= packs) break;
    const Pack<T> in = load128(x + at(k) * kCount);
#pragma unroll
    for (int i = 0; i < kCount; ++i) sum += values[k][i] = load_value(in.values[i]);
  }
  const float mean = block_sum<kWave, kThreads>(sum, slots) / static_cast<float>(p.dim);
  float squares = 0;
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    if (at(k) >= packs) break;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      values[k][i] -= mean;
      squares += values[k][i] * values[k][i];
    }
  }
  squares = block_sum<kWave, kThreads>(squares, slots);
  const float scale = 1.0f / sqrt(squares / static_cast<float>(p.dim) + p.eps);
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    if (at(k) >= packs) break;
    Pack<T> by, plus, out;
    if (weight != nullptr) by = load128(weight + at(k) * kCount);
    if (bias != nullptr) plus = load128(bias + at(k) * kCount);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      float value = values[k][i] * scale;
      if (weight != nullptr) value *= load_value(by.values[i]);
      if (bias != nullptr) value += load_value(plus.values[i]);
      out.values[i] = store_value<T>(value);
    }
    store128(y + at(k) * kCount, out);
  }
}

#define RB_ANY(lanes, wave, dtype, T) \
  RB_KERNEL(layer_norm_##dtype##_##wave, kThreads, LayerNormParams, (layer_norm<T, lanes>(p)))
#define RB_ANY_WAVE(dtype, T) RB_WAVES(RB_ANY, dtype, T)
RB_EACH_FLOAT_TYPE(RB_ANY_WAVE)

// Up to kPacks * 256 packs a row.
#define RB_PACKED(lanes, wave, dtype, T)                                    \
  RB_KERNEL(layer_norm_##dtype##_packed1_##wave, kThreads, LayerNormParams, \
            (layer_norm_packed<T, lanes, 1>(p)))                            \
  RB_KERNEL(layer_norm_##dtype##_packed4_##wave, kThreads, LayerNormParams, \
            (layer_norm_packed<T, lanes, 4>(p)))
#define RB_PACKED_WAVE(dtype, T) RB_WAVES(RB_PACKED, dtype, T)
RB_EACH_FLOAT(RB_PACKED_WAVE)

}  // namespace gpu
}  // namespace rbee
