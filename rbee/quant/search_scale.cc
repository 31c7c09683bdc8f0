// Blocks without an offset: one scale (q4_0, q5_0, iq4_nl), or one scale and a small integer that
// multiplies it for each group (q3_k, q6_k, iq4_xs).

#include "rbee/quant/encode.h"
#include "rbee/quant/fit.h"
#include "rbee/quant/put.h"

namespace rbee::quant {
namespace {

template <class Codes, class Block>
void put_group(const float* x, int group, Block& block) {
  const Lanes inverse = splat(inverse_or_zero(scale_of(block, group).d));
  for (int i = group * Block::kGroup; i < (group + 1) * Block::kGroup; i += kLanes) {
    const Lanes codes = Codes::nearest(load(x + i) * inverse);
    for (int lane = 0; lane < kLanes; ++lane)
      put_quant(block, i + lane, Codes::stored(codes[lane]));
  }
}

template <class Codes, class Block>
void encode_one_scale(const float* x, const float* weights, Block& block) {
  block.d = finite_half(fit_scale<Codes>(x, weights, Block::kElements).d).bits;
  put_group<Codes>(x, 0, block);
}

template <class Block>
struct Scales {
  static constexpr int kGroups = Block::kElements / Block::kGroup;
  float d = 0;  // a half
  int scale[kGroups] = {};
  float error = 0;
  float next_d = 0;  // the best d for these scales and the codes they gave
};

// The best integer for each group, near the one that its own fit asks for, under a given d.
template <class Codes, class ScaleCodes, class Block>
Scales<Block> choose_scales(const float* x, const float* weights, const float* wanted, float d) {
  Scales<Block> result{.d = d};
  float change = 0;
  float curvature = 0;
  const float inverse = inverse_or_zero(d);
  for (int group = 0; group < Scales<Block>::kGroups; ++group) {
    const int first = group * Block::kGroup;
    const auto centre = static_cast<int>(ScaleCodes::nearest(splat(wanted[group] * inverse))[0]);
    Sums best{.rr = HUGE_VALF};
    for (int scale = centre - 1; scale <= centre + 1; ++scale) {
      const auto factor = static_cast<float>(scale);
      if (factor < ScaleCodes::kLowest || factor > ScaleCodes::kHighest) continue;
      const Sums sums = measure<Codes>(x + first, weights + first, Block::kGroup, d * factor);
      if (!(sums.rr < best.rr)) continue;
      best = sums;
      result.scale[group] = scale;
    }
    const auto factor = static_cast<float>(result.scale[group]);
    result.error += best.rr;
    change += factor * best.rq;
    curvature += factor * factor * best.qq;
  }
  result.next_d = curvature > 0 ? round_to_half(d + change / curvature) : d;
  return result;
}

template <class Codes, class ScaleCodes, class Block>
void encode_scaled_groups(const float* x, const float* weights, Block& block) {
  constexpr int kGroups = Scales<Block>::kGroups;
  float wanted[kGroups];
  float curvature[kGroups];
  for (int group = 0; group < kGroups; ++group) {
    const int first = group * Block::kGroup;
    const ScaleFit fit = fit_scale<Codes>(x + first, weights + first, Block::kGroup);
    wanted[group] = fit.d;
    curvature[group] = fit.curvature;
  }
  const float d = fit_scale<ScaleCodes>(wanted, curvature, kGroups).d;
  if (d == 0) return;
  auto best = choose_scales<Codes, ScaleCodes, Block>(x, weights, wanted, round_to_half(d));
  // A half this small has less than six bits: a larger one with smaller integers may be closer.
  constexpr float kCoarse = 0x1p-18f;
  constexpr float kSmallestHalf = 0x1p-24f;
  float larger = std::copysign(std::max(2 * std::fabs(d), kSmallestHalf), d);
  for (; std::fabs(larger) < kCoarse; larger *= 2) {
    const auto next =
        choose_scales<Codes, ScaleCodes, Block>(x, weights, wanted, round_to_half(larger));
    if (next.error < best.error) best = next;
  }
  constexpr int kRounds = 3;
  for (int round = 0; round < kRounds && best.next_d != best.d; ++round) {
    auto next = choose_scales<Codes, ScaleCodes, Block>(x, weights, wanted, best.next_d);
    if (!(next.error < best.error)) break;
    best = next;
  }
  block.d = finite_half(best.d).bits;
  for (int group = 0; group < kGroups; ++group) {
    put_scale(block, group, best.scale[group]);
    put_group<Codes>(x, group, block);
  }
}

}  // namespace

void encode_search(const float* x, const float* weights, BlockQ4_0& block) {
  encode_one_scale<Integers<-8, 7>>(x, weights, block);
}

void encode_search(const float* x, const float* weights, BlockQ5_0& block) {
  encode_one_scale<Integers<-16, 15>>(x, weights, block);
}

void encode_search(const float* x, const float* weights, BlockIQ4_NL& block) {
  encode_one_scale<Iq4Codes>(x, weights, block);
}

void encode_search(const float* x, const float* weights, BlockQ3_K& block) {
  encode_scaled_groups<Integers<-4, 3>, Integers<-32, 31>>(x, weights, block);
}

void encode_search(const float* x, const float* weights, BlockQ6_K& block) {
  encode_scaled_groups<Integers<-32, 31>, Integers<-128, 127>>(x, weights, block);
}

void encode_search(const float* x, const float* weights, BlockIQ4_XS& block) {
  encode_scaled_groups<Iq4Codes, Integers<-32, 31>>(x, weights, block);
}

}  // namespace rbee::quant
