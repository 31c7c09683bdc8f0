// ggml's reference rounding, reproduced operation by operation: each intermediate is rounded to
// float32 where ggml rounds, so the bytes are the same. And e4m3, which ggml does not have.

#include <algorithm>
#include <cmath>

#include "rbee/core/half.h"
#include "rbee/quant/encode.h"
#include "rbee/quant/put.h"

namespace rbee::quant {
namespace {

// 1 / d, and 0 where that is infinite: such a d is far below the smallest half.
float inverse_of(float d) {
  const float inverse = 1.0f / d;
  return std::isfinite(inverse) ? inverse : 0.0f;
}

float largest_magnitude(const float* x, int n) {
  float largest = 0.0f;
  for (int i = 0; i < n; ++i) largest = std::max(largest, std::fabs(x[i]));
  return largest;
}

// The first of the values of largest magnitude, with its sign.
float extreme_of(const float* x, int n) {
  float extreme = x[0];
  for (int i = 1; i < n; ++i) {
    if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
  }
  return extreme;
}

// Levels -half to half - 1; the lowest meets the extreme value exactly.
template <int kHalf, class Block>
void encode_signed(const float* x, Block& block) {
  const float d = extreme_of(x, Block::kElements) / static_cast<float>(-kHalf);
  const float inverse = inverse_of(d);
  block.d = to_f16(d).bits;
  for (int i = 0; i < Block::kElements; ++i) {
    const int level = static_cast<int>(x[i] * inverse + (kHalf + 0.5f));
    put_quant(block, i, std::min(level, 2 * kHalf - 1) - kHalf);
  }
}

// Levels 0 to top from the smallest value to the largest.
template <int kTop, class Block>
void encode_range(const float* x, Block& block) {
  const auto [least, most] = std::minmax_element(x, x + Block::kElements);
  const float d = (*most - *least) / static_cast<float>(kTop);
  const float inverse = inverse_of(d);
  block.d = to_f16(d).bits;
  block.m = to_f16(*least).bits;
  for (int i = 0; i < Block::kElements; ++i) {
    // ggml rounds so; lround differs next to a half. NOLINTNEXTLINE(bugprone-incorrect-roundings)
    const int level = static_cast<int>((x[i] - *least) * inverse + 0.5f);
    put_quant(block, i, std::min(level, kTop));
  }
}

// The E2M1 code nearest to x / scale; of two at the same distance the one of smaller magnitude.
int nearest_e2m1(float x, float scale) {
  int best = 0;
  float least = std::fabs(x);
  for (int code = 1; code < 16; ++code) {
    const float error = std::fabs(scale * static_cast<float>(e2m1_doubled(code)) - x);
    if (error < least) {
      least = error;
      best = code;
    }
  }
  return best;
}

}  // namespace

void encode_reference(const float* x, BlockQ4_0& block) {
  encode_signed<8>(x, block);
}

void encode_reference(const float* x, BlockQ5_0& block) {
  encode_signed<16>(x, block);
}

void encode_reference(const float* x, BlockQ4_1& block) {
  encode_range<15>(x, block);
}

void encode_reference(const float* x, BlockQ5_1& block) {
  encode_range<31>(x, block);
}

void encode_reference(const float* x, BlockQ8_0& block) {
  const float d = largest_magnitude(x, BlockQ8_0::kElements) / 127.0f;
  const float inverse = inverse_of(d);
  block.d = to_f16(d).bits;
  for (int i = 0; i < BlockQ8_0::kElements; ++i) {
    block.qs[i] = static_cast<i8>(std::round(x[i] * inverse));
  }
}

// The extreme value becomes -127 and each value is rounded to even, as ggml's dot products expect.
void encode_reference(const float* x, BlockQ8_K& block) {
  const float extreme = extreme_of(x, BlockQ8_K::kElements);
  const float scale = -127.0f / extreme;
  if (!std::isfinite(scale)) return;
  block.d = 1.0f / scale;
  for (int i = 0; i < BlockQ8_K::kElements; ++i) {
    const int q = std::min(127, static_cast<int>(std::nearbyint(x[i] * scale)));
    block.qs[i] = static_cast<i8>(q);
    block.bsums[i / 16] = static_cast<i16>(block.bsums[i / 16] + q);
  }
}

void encode_reference(const float* x, BlockMXFP4& block) {
  const float largest = largest_magnitude(x, BlockMXFP4::kElements);
  if (largest == 0.0f) return;
  // The specification's floor(log2) with the logarithm rounded to float32, as ggml has it: values
  // just below a power of two count as that power.
  const auto log = static_cast<float>(std::log2(static_cast<double>(largest)));
  block.e = static_cast<u8>(std::max(0.0f, std::floor(log) + (127 - 2)));
  const float scale = e8m0_halved(block.e);
  for (int i = 0; i < BlockMXFP4::kElements; ++i) {
    put_quant(block, i, nearest_e2m1(x[i], scale));
  }
}

void encode_reference(const float* x, BlockF8_G128& block) {
  constexpr float kLargestCode = 448.0f;
  block.d = largest_magnitude(x, BlockF8_G128::kElements) / kLargestCode;
  const float inverse = inverse_of(block.d);
  for (int i = 0; i < BlockF8_G128::kElements; ++i) block.qs[i] = to_f8e4m3(x[i] * inverse).bits;
}

}  // namespace rbee::quant
