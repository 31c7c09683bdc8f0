// Blocks of E2M1 codes, whose scales are small floats (mxfp4, nvfp4), and ternary ones (tq1_0,
// tq2_0).

#include "rbee/quant/encode.h"
#include "rbee/quant/fit.h"
#include "rbee/quant/put.h"

namespace rbee::quant {
namespace {

// The scale's code, from first to last, with the least error for n values.
template <class ScaleOf>
u8 best_scale(const float* x, const float* weights, int n, int first, int last, ScaleOf scale_of) {
  float least = HUGE_VALF;
  int best = first;
  for (int code = first; code <= last; ++code) {
    const float error = measure<E2m1Codes>(x, weights, n, scale_of(static_cast<u8>(code))).rr;
    if (!(error < least)) continue;
    least = error;
    best = code;
  }
  return static_cast<u8>(best);
}

template <class Block>
void put_floats(const float* x, int group, Block& block) {
  const Lanes inverse = splat(inverse_or_zero(scale_of(block, group).d));
  for (int i = group * Block::kGroup; i < (group + 1) * Block::kGroup; i += kLanes) {
    const Lanes codes = E2m1Codes::nearest(load(x + i) * inverse);
    for (int lane = 0; lane < kLanes; ++lane) {
      put_quant(block, i + lane, E2m1Codes::stored(codes[lane]));
    }
  }
}

// The scale of codes -1, 0 and 1, a half. It is the largest magnitude for weights that were trained
// to be ternary; for others it is near their root of mean squares.
f16 ternary_scale(const float* x, const float* weights, int n) {
  using Trits = Integers<-1, 1>;
  const float largest = std::fabs(extreme_value(x, n));
  if (largest < kNothing) return {};
  float total = 0, squares = 0;
  for (int i = 0; i < n; ++i) {
    const float part = x[i] / largest;
    total += weights[i];
    squares += weights[i] * part * part;
  }
  const float root = largest * std::sqrt(squares / total);
  ScaleFit best = regress<Trits>(x, weights, n, largest);
  for (float times = 0.5f; times <= 2.5f; times += 0.125f) {
    const ScaleFit fit = regress<Trits>(x, weights, n, root * times);
    if (fit.error < best.error) best = fit;
  }
  constexpr int kPolish = 8;
  for (int i = 0; i < kPolish; ++i) {
    const ScaleFit fit = regress<Trits>(x, weights, n, best.d);
    if (!(fit.error < best.error)) break;
    best = fit;
  }
  return finite_half(best.d);
}

// -1, 0 or 1 for each value.
void choose_trits(const float* x, float d, int* trits, int n) {
  const Lanes inverse = splat(inverse_or_zero(d));
  for (int i = 0; i < n; i += kLanes) {
    const Lanes codes = Integers<-1, 1>::nearest(load(x + i) * inverse);
    for (int lane = 0; lane < kLanes; ++lane) trits[i + lane] = static_cast<int>(codes[lane]);
  }
}

}  // namespace

void encode_search(const float* x, const float* weights, BlockMXFP4& block) {
  encode_reference(x, block);
  const int centre = block.e;
  block = {};
  if (extreme_value(x, BlockMXFP4::kElements) == 0) return;
  block.e = best_scale(x, weights, BlockMXFP4::kElements, std::max(centre - 1, 0),
                       std::min(centre + 1, 254), e8m0_halved);
  put_floats(x, 0, block);
}

void encode_search(const float* x, const float* weights, BlockNVFP4& block) {
  constexpr int kGroup = BlockNVFP4::kGroup, kMost = 0x7e;
  for (int group = 0; group < BlockNVFP4::kElements / kGroup; ++group) {
    const float* from = x + group * kGroup;
    const float largest = std::fabs(extreme_value(from, kGroup));
    if (largest == 0) continue;
    const int centre = std::min<int>(to_f8e4m3(largest / 6).bits, kMost);
    // From clipping the largest value somewhat to reaching it with the third largest code.
    block.d[group] = best_scale(from, weights + group * kGroup, kGroup, std::max(centre - 3, 1),
                                std::min(centre + 7, kMost), ue4m3_halved);
    put_floats(x, group, block);
  }
}

void encode_search(const float* x, const float* weights, BlockTQ1_0& block) {
  constexpr int kElements = BlockTQ1_0::kElements;
  const f16 d = ternary_scale(x, weights, kElements);
  int trits[kElements];
  choose_trits(x, to_float(d), trits, kElements);
  block.d = d.bits;
  put_trits(block, trits);
}

void encode_search(const float* x, const float* weights, BlockTQ2_0& block) {
  constexpr int kElements = BlockTQ2_0::kElements;
  const f16 d = ternary_scale(x, weights, kElements);
  int trits[kElements];
  choose_trits(x, to_float(d), trits, kElements);
  block.d = d.bits;
  for (int i = 0; i < kElements; ++i) put_crumb(block.qs, i, trits[i] + 1);
}

}  // namespace rbee::quant
