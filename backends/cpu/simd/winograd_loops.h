#pragma once
// Winograd's transforms, a vector of channels at a time. Include after a vec header.

#include "backends/cpu/simd/storage.h"
#include "backends/cpu/simd/winograd.h"

namespace rbee::cpu {
namespace {

constexpr float kInner = 0.70710678f;  // the points +-a, a^2 = 1/2
constexpr float kOuter = 1.41421356f;  // the points +-b, b^2 = 2

// Six numbers along one axis, in place: the input's values at the points.
RB_INLINE void transform_input(Vec d[kWinogradInput]) {
  const Vec inner_even = fma(d[2], splat(-2.0f), d[4]);
  const Vec inner_odd = fma(d[1], splat(-2.0f), d[3]) * splat(kInner);
  const Vec outer_even = fma(d[2], splat(-0.5f), d[4]);
  const Vec outer_odd = fma(d[1], splat(-0.5f), d[3]) * splat(kOuter);
  d[0] = fma(d[2], splat(-2.5f), d[0]) + d[4];
  d[5] = fma(d[3], splat(-2.5f), d[1]) + d[5];
  d[1] = inner_even + inner_odd;
  d[2] = inner_even - inner_odd;
  d[3] = outer_even + outer_odd;
  d[4] = outer_even - outer_odd;
}

// Three taps to six places.
RB_INLINE void transform_weight(const Vec g[3], Vec u[kWinogradInput]) {
  const Vec inner_even = fma(g[2], splat(0.5f), g[0]) * splat(-1.0f / 1.5f);
  const Vec inner_odd = g[1] * splat(-kInner / 1.5f);
  const Vec outer_even = fma(g[2], splat(2.0f), g[0]) * splat(1.0f / 6.0f);
  const Vec outer_odd = g[1] * splat(kOuter / 6.0f);
  u[0] = g[0];
  u[1] = inner_even + inner_odd;
  u[2] = inner_even - inner_odd;
  u[3] = outer_even + outer_odd;
  u[4] = outer_even - outer_odd;
  u[5] = g[2];
}

// Six products to four outputs.
RB_INLINE void transform_output(const Vec m[kWinogradInput], Vec y[kWinogradSide]) {
  const Vec inner_even = m[1] + m[2], inner_odd = (m[1] - m[2]) * splat(kInner);
  const Vec outer_even = m[3] + m[4], outer_odd = (m[3] - m[4]) * splat(kOuter);
  y[0] = m[0] + inner_even + outer_even;
  y[1] = inner_odd + outer_odd;
  y[2] = fma(inner_even, splat(0.5f), outer_even * splat(2.0f));
  y[3] = fma(inner_odd, splat(0.5f), outer_odd * splat(2.0f)) + m[5];
}

template <typename T>
RB_INLINE void transform_pixels(const void* const rows[kWinogradPlaces], int64_t channels,
                                float* out, int64_t step) {
  for (int64_t c = 0; c < channels; c += kLanes) {
    Vec down[kWinogradInput][kWinogradInput];  // [column][place along the column]
    for (int j = 0; j < kWinogradInput; ++j) {
      for (int i = 0; i < kWinogradInput; ++i) {
        const auto* row = static_cast<const T*>(rows[i * kWinogradInput + j]);
        down[j][i] = row != nullptr ? load(row + c) : splat(0.0f);
      }
      transform_input(down[j]);
    }
    for (int i = 0; i < kWinogradInput; ++i) {
      Vec across[kWinogradInput];
      for (int j = 0; j < kWinogradInput; ++j) across[j] = down[j][i];
      transform_input(across);
      for (int j = 0; j < kWinogradInput; ++j) {
        store(out + (i * kWinogradInput + j) * step + c, across[j]);
      }
    }
  }
}

void winograd_input(DType dtype, const void* const rows[kWinogradPlaces], int64_t channels,
                    float* out, int64_t step) {
  with_storage(dtype, [&]<typename T>() { transform_pixels<T>(rows, channels, out, step); });
}

void winograd_weight(const float* const taps[kWinogradTaps], int64_t count, float* out,
                     int64_t step) {
  for (int64_t at = 0; at < count * kWinogradLanes; at += kLanes) {
    Vec down[3][kWinogradInput];
    for (int j = 0; j < 3; ++j) {
      const Vec g[3] = {load(taps[j] + at), load(taps[3 + j] + at), load(taps[6 + j] + at)};
      transform_weight(g, down[j]);
    }
    for (int i = 0; i < kWinogradInput; ++i) {
      const Vec g[3] = {down[0][i], down[1][i], down[2][i]};
      Vec across[kWinogradInput];
      transform_weight(g, across);
      for (int j = 0; j < kWinogradInput; ++j) {
        store(out + (i * kWinogradInput + j) * step + at, across[j]);
      }
    }
  }
}

template <typename T>
RB_INLINE void finish_tile(const float* sums, int64_t step, const WinogradTarget& target) {
  for (int c = 0; c < kWinogradLanes; c += kLanes) {
    const Vec add = load(target.add + c);
    Vec down[kWinogradInput][kWinogradSide];
    for (int j = 0; j < kWinogradInput; ++j) {
      Vec m[kWinogradInput];
      for (int i = 0; i < kWinogradInput; ++i) {
        m[i] = load(sums + (i * kWinogradInput + j) * step + c);
      }
      transform_output(m, down[j]);
    }
    for (int i = 0; i < kWinogradSide; ++i) {
      Vec m[kWinogradInput], y[kWinogradSide];
      for (int j = 0; j < kWinogradInput; ++j) m[j] = down[j][i];
      transform_output(m, y);
      for (int j = 0; j < kWinogradSide; ++j) {
        const int at = i * kWinogradSide + j;
        if (target.y[at] == nullptr) continue;
        Vec value = y[j] + add;
        const auto* residual = static_cast<const T*>(target.residual[at]);
        if (residual != nullptr) value = value + load(residual + c);
        store(static_cast<T*>(target.y[at]) + c, value);
      }
    }
  }
}

void winograd_output(DType dtype, const float* sums, int64_t step, const WinogradTarget& target) {
  with_storage(dtype, [&]<typename T>() { finish_tile<T>(sums, step, target); });
}

constexpr WinogradKernels kWinograd{
    .input = &winograd_input, .weight = &winograd_weight, .output = &winograd_output};

}  // namespace
}  // namespace rbee::cpu
