// y = (x - mean) / sqrt(variance + eps) * weight + bias; a block or a wave a row. Limited by
// memory.
#include "backends/gpu/portable.h"
#include "backends/shared/norm_params.h"

namespace rbee {
namespace gpu {

constexpr int kThreads = 256;      // of a block that has one row
constexpr int kWaveThreads = 128;  // of one whose waves have a row each

// f64 in double, everything else in float. A thread reads a row three times, the last two times
// from a cache.
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

// Rows of 16-byte packs, at most kPacks a thread, in registers: each row is read once.
template <class T, int kPacks>
struct PackedRow {
  static constexpr int kCount = Pack<T>::kCount;
  float values[kPacks][kCount];

  // The row's packs first, first + step, ...; the others are zeros.
  RB_DEVICE float load_and_sum(const T* x, int first, int step, int packs) {
    float sum = 0;
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      Pack<T> in{};
      if (first + k * step < packs) in = load128(x + (first + k * step) * kCount);
#pragma unroll
      for (int i = 0; i < kCount; ++i) sum += values[k][i] = load_value(in.values[i]);
    }
    return sum;
  }
  RB_DEVICE float centre_and_square(float mean, int first, int step, int packs) {
    float squares = 0;
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (first + k * step >= packs) break;
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        values[k][i] -= mean;
        squares += values[k][i] * values[k][i];
      }
    }
    return squares;
  }
  RB_DEVICE void store(const LayerNormParams& p, T* y, float scale, int first, int step,
                       int packs) const {
    const T* weight = static_cast<const T*>(p.weight);
    const T* bias = static_cast<const T*>(p.bias);
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const int at = (first + k * step) * kCount;
      if (first + k * step >= packs) break;
      Pack<T> by, plus, out;
      if (weight != nullptr) by = load128(weight + at);
      if (bias != nullptr) plus = load128(bias + at);
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        float value = values[k][i] * scale;
        if (weight != nullptr) value *= load_value(by.values[i]);
        if (bias != nullptr) value += load_value(plus.values[i]);
        out.values[i] = store_value<T>(value);
      }
      store128(y + at, out);
    }
  }
};

// A block a row.
template <class T, int kWave>
RB_DEVICE void layer_norm_packed(const LayerNormParams& p) {
  RB_SHARED float slots[kThreads / kWave];
  const i64 row = block_x();
  const int packs = static_cast<int>(p.dim / Pack<T>::kCount);
  const int first = static_cast<int>(thread_x());
  const float dim = static_cast<float>(p.dim);
  PackedRow<T, 4> own;
  const T* x = static_cast<const T*>(p.x) + row_start(p.x_rows, row);
  const float sum = own.load_and_sum(x, first, kThreads, packs);
  const float mean = block_sum<kWave, kThreads>(sum, slots) / dim;
  const float squares = own.centre_and_square(mean, first, kThreads, packs);
  const float scale = 1.0f / sqrt(block_sum<kWave, kThreads>(squares, slots) / dim + p.eps);
  own.store(p, static_cast<T*>(p.y) + row_start(p.y_rows, row), scale, first, kThreads, packs);
}

// A wave a row: no thread waits at a barrier.
template <class T, int kWave, int kPacks>
RB_DEVICE void layer_norm_wave(const LayerNormParams& p) {
  const int thread = static_cast<int>(thread_x());
  const i64 row = static_cast<i64>(block_x()) * (kWaveThreads / kWave) + thread / kWave;
  if (row >= p.rows) return;
  const int packs = static_cast<int>(p.dim / Pack<T>::kCount);
  const int first = thread % kWave;
  const float dim = static_cast<float>(p.dim);
  PackedRow<T, kPacks> own;
  const T* x = static_cast<const T*>(p.x) + row_start(p.x_rows, row);
  const float mean = wave_sum<kWave>(own.load_and_sum(x, first, kWave, packs)) / dim;
  const float squares = wave_sum<kWave>(own.centre_and_square(mean, first, kWave, packs));
  const float scale = 1.0f / sqrt(squares / dim + p.eps);
  own.store(p, static_cast<T*>(p.y) + row_start(p.y_rows, row), scale, first, kWave, packs);
}

#define RB_ANY(lanes, wave, dtype, T) \
  RB_KERNEL(layer_norm_##dtype##_##wave, kThreads, LayerNormParams, (layer_norm<T, lanes>(p)))
#define RB_ANY_WAVE(dtype, T) RB_WAVES(RB_ANY, dtype, T)
RB_EACH_FLOAT_TYPE(RB_ANY_WAVE)

// By the most packs of a thread: of a wave's rows, or of a block's.
#define RB_PACKED(lanes, wave, dtype, T)                                     \
  RB_KERNEL(layer_norm_##dtype##_few2_##wave, kWaveThreads, LayerNormParams, \
            (layer_norm_wave<T, lanes, 2>(p)))                               \
  RB_KERNEL(layer_norm_##dtype##_few3_##wave, kWaveThreads, LayerNormParams, \
            (layer_norm_wave<T, lanes, 3>(p)))                               \
  RB_KERNEL(layer_norm_##dtype##_few5_##wave, kWaveThreads, LayerNormParams, \
            (layer_norm_wave<T, lanes, 5>(p)))                               \
  RB_KERNEL(layer_norm_##dtype##_packed_##wave, kThreads, LayerNormParams,   \
            (layer_norm_packed<T, lanes>(p)))
#define RB_PACKED_WAVE(dtype, T) RB_WAVES(RB_PACKED, dtype, T)
RB_EACH_FLOAT(RB_PACKED_WAVE)

}  // namespace gpu
}  // namespace rbee
