// Blocks with an offset: one scale and one minimum (q4_1, q5_1), or a pair of them and two small
// integers that multiply it for each group (q2_k, q4_k, q5_k).

#include "rbee/quant/encode.h"
#include "rbee/quant/fit.h"
#include "rbee/quant/put.h"

namespace rbee::quant {
namespace {

template <class Codes, class Block>
void put_group(const float* x, int group, Block& block) {
  const BlockScale scale = scale_of(block, group);
  const Lanes inverse = splat(inverse_or_zero(scale.d));
  for (int i = group * Block::kGroup; i < (group + 1) * Block::kGroup; i += kLanes) {
    const Lanes codes = Codes::nearest((load(x + i) - splat(scale.m)) * inverse);
    for (int lane = 0; lane < kLanes; ++lane) {
      put_quant(block, i + lane, Codes::stored(codes[lane]));
    }
  }
}

template <class Codes, class Block>
void encode_one_range(const float* x, const float* weights, Block& block) {
  const auto fit = fit_offset<Codes, Offset::any>(x, weights, Block::kElements);
  block.d = finite_half(fit.d).bits;
  block.m = finite_half(fit.b).bits;
  put_group<Codes>(x, 0, block);
}

// The two shared scales, both halves.
struct Pair {
  float d = 0;
  float dmin = 0;

  bool operator==(const Pair&) const = default;
};

template <class Block>
struct Ranges {
  static constexpr int kGroups = Block::kElements / Block::kGroup;
  Pair pair;
  int scale[kGroups] = {};
  int min[kGroups] = {};
  float error = 0;
  Pair next;  // the best pair for these integers and the codes they gave
};

// Sums of the regression of x by pair.d * (scale q) and pair.dmin * (-min) over a block.
struct PairSums {
  float dd = 0;
  float dm = 0;
  float mm = 0;
  float rd = 0;
  float rm = 0;

  void add(const Sums& s, float scale, float min) {
    dd += scale * scale * s.qq;
    dm -= scale * min * s.q;
    mm += min * min * s.w;
    rd += scale * s.rq;
    rm -= min * s.r;
  }

  Pair solve(Pair at) const {
    const float determinant = dd * mm - dm * dm;
    if (determinant > 1e-5f * dd * mm) {
      at.d += (rd * mm - rm * dm) / determinant;
      at.dmin += (rm * dd - rd * dm) / determinant;
    } else if (dd > 0) {
      at.d += rd / dd;
    }
    return {round_to_half(std::max(at.d, 0.0f)), round_to_half(std::max(at.dmin, 0.0f))};
  }
};

template <class ScaleCodes>
int nearest_integer(float wanted, float unit) {
  return static_cast<int>(ScaleCodes::nearest(splat(wanted * inverse_or_zero(unit)))[0]);
}

// Moves (scale, min) to the nearby pair with the least error for one group: each scale
// with that minimum, and with the one that the codes it gives ask for.
template <class Codes, class ScaleCodes>
Sums choose_range(const float* x, const float* weights, int n, Pair pair, int& scale, int& min) {
  constexpr int kTop = static_cast<int>(ScaleCodes::kHighest);
  const int near_scale = scale;
  const int near_min = min;
  Sums best{.rr = HUGE_VALF};
  const auto consider = [&](int s, int m) {
    const float d = pair.d * static_cast<float>(s);
    const float b = -pair.dmin * static_cast<float>(m);
    const Sums sums = measure<Codes>(x, weights, n, d, b);
    if (sums.rr < best.rr) {
      best = sums;
      scale = s;
      min = m;
    }
    return nearest_integer<ScaleCodes>(-b - sums.r / sums.w, pair.dmin);
  };
  for (int s = std::max(near_scale - 1, 0); s <= std::min(near_scale + 1, kTop); ++s) {
    const int wanted_min = consider(s, near_min);
    if (wanted_min != near_min) consider(s, wanted_min);
  }
  return best;
}

template <class Codes, class ScaleCodes, class Block>
Ranges<Block> choose_ranges(const float* x, const float* weights, const OffsetFit* wanted,
                            Pair pair) {
  Ranges<Block> result{.pair = pair};
  PairSums pair_sums;
  for (int group = 0; group < Ranges<Block>::kGroups; ++group) {
    const int first = group * Block::kGroup;
    int& scale = result.scale[group];
    int& min = result.min[group];
    scale = nearest_integer<ScaleCodes>(wanted[group].d, pair.d);
    min = nearest_integer<ScaleCodes>(-wanted[group].b, pair.dmin);
    const Sums sums = choose_range<Codes, ScaleCodes>(x + first, weights + first, Block::kGroup,
                                                      pair, scale, min);
    result.error += sums.rr;
    pair_sums.add(sums, static_cast<float>(scale), static_cast<float>(min));
  }
  result.next = pair_sums.solve(pair);
  return result;
}

// A first pair: the scales and the minima that the groups want, each fitted on its own.
template <class ScaleCodes>
Pair fit_pair(const OffsetFit* wanted, const float* total_weight, int groups) {
  constexpr int kMostGroups = 16;
  float d[kMostGroups];
  float minus_b[kMostGroups];
  float curvature[kMostGroups];
  for (int group = 0; group < groups; ++group) {
    d[group] = wanted[group].d;
    minus_b[group] = -wanted[group].b;
    curvature[group] = wanted[group].curvature;
  }
  return {round_to_half(fit_scale<ScaleCodes>(d, curvature, groups).d),
          round_to_half(fit_scale<ScaleCodes>(minus_b, total_weight, groups).d)};
}

template <class Codes, class ScaleCodes, class Block>
void encode_ranged_groups(const float* x, const float* weights, Block& block) {
  constexpr int kGroups = Ranges<Block>::kGroups;
  OffsetFit wanted[kGroups];
  float total_weight[kGroups];
  for (int group = 0; group < kGroups; ++group) {
    const int first = group * Block::kGroup;
    wanted[group] =
        fit_offset<Codes, Offset::not_positive>(x + first, weights + first, Block::kGroup);
    total_weight[group] = 0;
    for (int i = first; i < first + Block::kGroup; ++i) total_weight[group] += weights[i];
  }
  const Pair pair = fit_pair<ScaleCodes>(wanted, total_weight, kGroups);
  auto best = choose_ranges<Codes, ScaleCodes, Block>(x, weights, wanted, pair);
  constexpr int kRounds = 3;
  for (int round = 0; round < kRounds && best.next != best.pair; ++round) {
    auto next = choose_ranges<Codes, ScaleCodes, Block>(x, weights, wanted, best.next);
    if (!(next.error < best.error)) break;
    best = next;
  }
  block.d = finite_half(best.pair.d).bits;
  block.dmin = finite_half(best.pair.dmin).bits;
  for (int group = 0; group < kGroups; ++group) {
    put_scale(block, group, best.scale[group]);
    put_min(block, group, best.min[group]);
    put_group<Codes>(x, group, block);
  }
}

}  // namespace

void encode_search(const float* x, const float* weights, BlockQ4_1& block) {
  encode_one_range<Integers<0, 15>>(x, weights, block);
}

void encode_search(const float* x, const float* weights, BlockQ5_1& block) {
  encode_one_range<Integers<0, 31>>(x, weights, block);
}

void encode_search(const float* x, const float* weights, BlockQ2_K& block) {
  encode_ranged_groups<Integers<0, 3>, Integers<0, 15>>(x, weights, block);
}

void encode_search(const float* x, const float* weights, BlockQ4_K& block) {
  encode_ranged_groups<Integers<0, 15>, Integers<0, 63>>(x, weights, block);
}

void encode_search(const float* x, const float* weights, BlockQ5_K& block) {
  encode_ranged_groups<Integers<0, 31>, Integers<0, 63>>(x, weights, block);
}

}  // namespace rbee::quant
