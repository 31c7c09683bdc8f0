#pragma once
// Dot products of few rows with all rows of a plain weight. Include after a vec header and
// sums_of(): lane i is the sum of the lanes of vector i.

#include "backends/cpu/plain_linear.h"

namespace rbee::cpu {
namespace {

constexpr int kDotRows = 4;  // at a time: rows of x ...
constexpr int kDotOuts = 4;  // ... by rows of the weight
// Up to this many numbers, adding up the lanes costs as much as the products.
constexpr int64_t kShort = 4 * kLanes;

template <int kRows, int kOuts>
RB_INLINE void dot_block(const DotProducts& at) {
  Vec sums[kRows][kOuts];
  for (int r = 0; r < kRows; ++r) {
    for (int o = 0; o < kOuts; ++o) sums[r][o] = splat(0);
  }
  const auto add = [&](auto&& read, int64_t k) {
    Vec x[kRows];
    for (int r = 0; r < kRows; ++r) x[r] = read(at.x + r * at.in + k);
    for (int o = 0; o < kOuts; ++o) {
      const Vec weight = read(at.weight + o * at.in + k);
      for (int r = 0; r < kRows; ++r) sums[r][o] = fma(x[r], weight, sums[r][o]);
    }
  };
  int64_t k = 0;
  for (; k + kLanes <= at.in; k += kLanes) add([](const float* p) { return load(p); }, k);
  const int64_t left = at.in - k;
  if (left > 0) add([left](const float* p) { return load_first(p, left); }, k);
  for (int r = 0; r < kRows; ++r) {
    for (int o = 0; o < kOuts; ++o) at.y[r * at.y_stride + o] = sum(sums[r][o]);
  }
}

// A row's products with as many rows of the weight as there are lanes.
RB_INLINE void short_dots(const float* x, const float* weight, int64_t in, float* y) {
  Vec sums[kLanes];
  for (int o = 0; o < kLanes; ++o) sums[o] = splat(0);
  int64_t k = 0;
  for (; k + kLanes <= in; k += kLanes) {
    const Vec row = load(x + k);
    for (int o = 0; o < kLanes; ++o) sums[o] = fma(row, load(weight + o * in + k), sums[o]);
  }
  if (const int64_t left = in - k; left > 0) {
    const Vec row = load_first(x + k, left);
    for (int o = 0; o < kLanes; ++o) {
      sums[o] = fma(row, load_first(weight + o * in + k, left), sums[o]);
    }
  }
  store(y, sums_of(sums));
}

template <int kRows>
RB_INLINE void dot_rows(DotProducts at) {
  for (; at.outs >= kDotOuts; at.outs -= kDotOuts) {
    dot_block<kRows, kDotOuts>(at);
    at.weight += kDotOuts * at.in;
    at.y += kDotOuts;
  }
  for (; at.outs > 0; --at.outs) {
    dot_block<kRows, 1>(at);
    at.weight += at.in;
    ++at.y;
  }
}

void dot_products(const DotProducts& all) {
  DotProducts at = all;
  if (at.in <= kShort) {
    for (; at.outs >= kLanes; at.outs -= kLanes) {
      for (int64_t r = 0; r < at.rows; ++r) {
        short_dots(at.x + r * at.in, at.weight, at.in, at.y + r * at.y_stride);
      }
      at.weight += kLanes * at.in;
      at.y += kLanes;
    }
  }
  for (; at.rows >= kDotRows; at.rows -= kDotRows) {
    dot_rows<kDotRows>(at);
    at.x += kDotRows * at.in;
    at.y += kDotRows * at.y_stride;
  }
  if (at.rows == 3) dot_rows<3>(at);
  if (at.rows == 2) dot_rows<2>(at);
  if (at.rows == 1) dot_rows<1>(at);
}

}  // namespace
}  // namespace rbee::cpu
