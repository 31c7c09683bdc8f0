#pragma once
// Include after a vec header.

#include <limits>

namespace rbee::cpu {
namespace {

constexpr float kLeastNumber = -std::numeric_limits<float>::max();

RB_INLINE Vec exp_of_number(Vec x, Vec top, Vec scale) {
  // NaN loses as the first operand.
  const Vec number = max(x, splat(-std::numeric_limits<float>::infinity()));
  return zero_below(exp(scale * (x - top)), number, kLeastNumber);
}

// Pieces are summed in lanes, and these sums in f64.
float exp_sum(const float* x, int64_t n, float top, float scale) {
  constexpr int64_t kPiece = 64 * kLanes;
  const Vec tops = splat(top), scales = splat(scale);
  double total = 0;
  int64_t i = 0;
  while (i + kLanes <= n) {
    const int64_t end = i + kPiece < n ? i + kPiece : n;
    Vec sums = splat(0.0f);
    for (; i + kLanes <= end; i += kLanes) sums = sums + exp_of_number(load(x + i), tops, scales);
    total += double{sum(sums)};
  }
  for (; i < n; ++i) {
    float lanes[kLanes];
    store(lanes, exp_of_number(splat(x[i]), tops, scales));
    total += double{lanes[0]};
  }
  return static_cast<float>(total);
}

}  // namespace
}  // namespace rbee::cpu
