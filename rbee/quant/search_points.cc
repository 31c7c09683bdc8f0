// Blocks whose codes name points of a code book (IQ1, IQ2, IQ3): one scale, and an odd integer that
// multiplies it for each group.

#include "rbee/quant/encode.h"
#include "rbee/quant/fit.h"
#include "rbee/quant/points.h"
#include "rbee/quant/put.h"

namespace rbee::quant {
namespace {

// The odd integers from 1 to kTop.
template <int kTop>
struct OddIntegers {
  static int nearest(float t) {
    const float half = std::clamp((t - 1) / 2, 0.0f, (kTop - 1) / 2.0f);
    return 2 * static_cast<int>(half + 0.5f) + 1;
  }
};

// What a block's elements are searched as: magnitudes, but where the signs of eight have to be an
// even number of negative ones and are not, the least important one is searched as negative.
template <class Block>
struct Magnitudes {
  float x[Block::kElements];
  uint8_t signs[Block::kElements / 8] = {};

  Magnitudes(const float* from, const float* weights, bool even) {
    for (int first = 0; first < Block::kElements; first += 8) {
      int negative = 0, least = first;
      for (int i = first; i < first + 8; ++i) {
        x[i] = std::fabs(from[i]);
        if (from[i] < 0) {
          ++negative;
          put_bits(signs[i / 8], 1, i % 8);
        }
        if (weights[i] * x[i] * x[i] < weights[least] * x[least] * x[least]) least = i;
      }
      if (!even || negative % 2 == 0) continue;
      x[least] = -x[least];
      signs[first / 8] ^= static_cast<uint8_t>(1 << (least % 8));
    }
  }
};

void add(Sums& to, const Sums& more) {
  to.qq += more.qq;
  to.rq += more.rq;
  to.rr += more.rr;
}

// The best point for kWidth values under the scale d, and its sums. shift: on top of each value.
template <class Block>
Sums choose_point(const float* x, const float* weights, float d, float shift, uint16_t& chosen) {
  const auto& points = Points<Block>::instance();
  constexpr int kParts = Points<Block>::kWidth / kLanes;
  const Lanes inverse = splat(inverse_or_zero(d)), more = splat(shift);
  Lanes t[kParts], w[kParts];
  for (int part = 0; part < kParts; ++part) {
    t[part] = load(x + part * kLanes) * inverse - more;
    w[part] = load(weights + part * kLanes);
  }
  const uint16_t* near = points.near(t);
  float least = HUGE_VALF;
  for (int i = 0; i < Points<Block>::kNear; ++i) {
    const float* values = points.values(near[i]);
    Lanes error{};
    for (int part = 0; part < kParts; ++part) {
      const Lanes apart = t[part] - load(values + part * kLanes);
      error += w[part] * apart * apart;
    }
    const float total = sum(error);
    if (!(total < least)) continue;
    least = total;
    chosen = near[i];
  }
  const float* values = points.values(chosen);
  Lanes qq{}, rq{}, rr{};
  for (int part = 0; part < kParts; ++part) {
    const Lanes q = load(values + part * kLanes) + more;
    const Lanes r = load(x + part * kLanes) - splat(d) * q;
    qq += w[part] * q * q;
    rq += w[part] * q * r;
    rr += w[part] * r * r;
  }
  return {.qq = sum(qq), .rq = sum(rq), .rr = sum(rr)};
}

// The codes of one group of a type.
template <class Block>
struct GroupCodes {
  uint16_t points[Block::kGroup / Points<Block>::kWidth] = {};
};

// The codes of a group under the scale d.
template <class Block>
Sums choose_codes(const float* x, const float* weights, float d, GroupCodes<Block>& codes) {
  Sums total;
  for (int i = 0; uint16_t& point : codes.points) {
    add(total, choose_point<Block>(x + i, weights + i, d, 0, point));
    i += Points<Block>::kWidth;
  }
  return total;
}

// IQ1 has points, and an eighth with one sign for a number of them: kShared elements.
template <class Block, int kShared>
struct ShiftedCodes {
  uint16_t points[Block::kGroup / 8] = {};
  bool negative[Block::kGroup / kShared] = {};
};
template <>
struct GroupCodes<BlockIQ1_S> : ShiftedCodes<BlockIQ1_S, 32> {};
template <>
struct GroupCodes<BlockIQ1_M> : ShiftedCodes<BlockIQ1_M, 8> {};

template <class Block, int kShared>
Sums choose_shifted(const float* x, const float* weights, float d,
                    ShiftedCodes<Block, kShared>& codes) {
  constexpr int kPoints = kShared / 8;
  Sums total;
  for (int part = 0; part < Block::kGroup / kShared; ++part) {
    Sums best{.rr = HUGE_VALF};
    for (const bool negative : {false, true}) {
      uint16_t points[kPoints];
      Sums sums;
      for (int i = 0; i < kPoints; ++i) {
        const int at = part * kShared + 8 * i;
        add(sums, choose_point<BlockIQ1_S>(x + at, weights + at, d, negative ? -1 : 1, points[i]));
      }
      if (!(sums.rr < best.rr)) continue;
      best = sums;
      codes.negative[part] = negative;
      std::copy_n(points, kPoints, codes.points + part * kPoints);
    }
    add(total, best);
  }
  return total;
}

Sums choose_codes(const float* x, const float* weights, float d, GroupCodes<BlockIQ1_S>& codes) {
  return choose_shifted<BlockIQ1_S, 32>(x, weights, d, codes);
}
Sums choose_codes(const float* x, const float* weights, float d, GroupCodes<BlockIQ1_M>& codes) {
  return choose_shifted<BlockIQ1_M, 8>(x, weights, d, codes);
}

// The scales that a group's own fit tries: largest magnitude over these codes.
struct Range {
  float from, to;
  int steps;
};

template <class Block>
ScaleFit regress(const float* x, const float* weights, float d) {
  GroupCodes<Block> codes;
  const Sums s = choose_codes(x, weights, d, codes);
  if (!(s.qq > 0)) return {0.0f, s.rr, 0.0f};
  return {d + s.rq / s.qq, s.rr - s.rq * (s.rq / s.qq), s.qq};
}

template <class Block>
ScaleFit fit_group(const float* x, const float* weights, const Range& range) {
  const float largest = std::fabs(extreme_value(x, Block::kGroup));
  if (largest < kNothing) return {};
  ScaleFit best{.error = HUGE_VALF};
  // Values of one magnitude: the book need not have points of many large digits.
  if (PointTraits<Block>::kFirst > 0) {
    best = regress<Block>(x, weights, largest / PointTraits<Block>::kFirst);
  }
  for (int step = 0; step < range.steps; ++step) {
    const float part = static_cast<float>(step) / static_cast<float>(range.steps - 1);
    const float code = range.from + part * (range.to - range.from);
    const ScaleFit fit = regress<Block>(x, weights, largest / code);
    if (fit.error < best.error && fit.d > 0) best = fit;
  }
  const ScaleFit fit = regress<Block>(x, weights, best.d);
  return fit.error < best.error && fit.d > 0 ? fit : best;
}

template <class Block>
struct Choice {
  static constexpr int kGroups = Block::kElements / Block::kGroup;
  float d = 0;  // a half
  int scale[kGroups] = {};
  GroupCodes<Block> codes[kGroups];
  float error = 0;
  float next_d = 0;  // the best d for these scales and codes
};

template <class Block>
constexpr float kUnit = PointTraits<Block>::kUnit;
template <class Block>
constexpr int kTopScale = static_cast<int>(PointTraits<Block>::kTopScale);

// The best odd integer for each group, near the one that its own fit asks for, under a given d.
template <class Block>
Choice<Block> choose_scales(const float* x, const float* weights, const float* wanted, float d) {
  Choice<Block> result;
  result.d = d;
  float change = 0, curvature = 0;
  for (int group = 0; group < Choice<Block>::kGroups; ++group) {
    const int first = group * Block::kGroup;
    const float unit = d * kUnit<Block>;
    const int centre =
        OddIntegers<kTopScale<Block>>::nearest(wanted[group] * inverse_or_zero(unit));
    Sums best{.rr = HUGE_VALF};
    for (int scale = centre - 2; scale <= centre + 2; scale += 2) {
      if (scale < 1 || scale > kTopScale<Block>) continue;
      GroupCodes<Block> codes;
      const Sums sums =
          choose_codes(x + first, weights + first, unit * static_cast<float>(scale), codes);
      if (!(sums.rr < best.rr)) continue;
      best = sums;
      result.scale[group] = scale;
      result.codes[group] = codes;
    }
    const float factor = kUnit<Block> * static_cast<float>(result.scale[group]);
    result.error += best.rr;
    change += factor * best.rq;
    curvature += factor * factor * best.qq;
  }
  result.next_d = curvature > 0 ? round_to_half(d + change / curvature) : d;
  return result;
}

// A block's d and all that it multiplies.
template <class Block>
Choice<Block> choose(const float* x, const float* weights, const Range& range) {
  constexpr int kGroups = Choice<Block>::kGroups;
  float wanted[kGroups];
  float most = 0;
  for (int group = 0; group < kGroups; ++group) {
    const int first = group * Block::kGroup;
    wanted[group] = fit_group<Block>(x + first, weights + first, range).d;
    most = std::max(most, wanted[group]);
  }
  if (most == 0) return {};
  constexpr float kTop = kTopScale<Block> * kUnit<Block>;
  const float d = round_to_half(most / kTop);
  if (d == 0) return {};
  auto best = choose_scales<Block>(x, weights, wanted, d);
  constexpr int kRounds = 2;
  for (int round = 0; round < kRounds && best.next_d != best.d && best.next_d > 0; ++round) {
    auto next = choose_scales<Block>(x, weights, wanted, best.next_d);
    if (!(next.error < best.error)) break;
    best = next;
  }
  return best;
}

constexpr Range kIq2Range{0.75f * 43, 1.3f * 43, 7};
constexpr Range kIq3XxsRange{0.85f * 62, 1.2f * 62, 8};
constexpr Range kIq3SRange{0.85f * 15, 1.2f * 15, 8};
constexpr Range kIq1Range{9, 22, 5};

}  // namespace

void encode_search(const float* x, const float* weights, BlockIQ2_XXS& block) {
  const Magnitudes<BlockIQ2_XXS> all(x, weights, true);
  const auto best = choose<BlockIQ2_XXS>(all.x, weights, kIq2Range);
  block.d = finite_half(best.d).bits;
  for (int group = 0; group < 8 && best.d != 0; ++group) {
    u32 word = static_cast<u32>(best.scale[group] / 2) << 28;
    for (int i = 0; i < 4; ++i) {
      block.qs[8 * group + i] = static_cast<u8>(best.codes[group].points[i]);
      word |= (all.signs[4 * group + i] & 127u) << (7 * i);
    }
    put_word(block.qs + 8 * group + 4, word);
  }
}

void encode_search(const float* x, const float* weights, BlockIQ2_XS& block) {
  const Magnitudes<BlockIQ2_XS> all(x, weights, true);
  const auto best = choose<BlockIQ2_XS>(all.x, weights, kIq2Range);
  block.d = finite_half(best.d).bits;
  for (int group = 0; group < 16 && best.d != 0; ++group) {
    put_bits(block.scales[group / 2], best.scale[group] / 2, 4 * (group & 1));
    for (int i = 0; i < 2; ++i) {
      const int eight = 2 * group + i;
      const u32 signs = all.signs[eight] & 127u;
      block.qs[eight] = static_cast<u16>(best.codes[group].points[i] | (signs << 9));
    }
  }
}

void encode_search(const float* x, const float* weights, BlockIQ2_S& block) {
  const Magnitudes<BlockIQ2_S> all(x, weights, false);
  const auto best = choose<BlockIQ2_S>(all.x, weights, kIq2Range);
  block.d = finite_half(best.d).bits;
  for (int group = 0; group < 16 && best.d != 0; ++group) {
    put_bits(block.scales[group / 2], best.scale[group] / 2, 4 * (group & 1));
    for (int i = 0; i < 2; ++i) {
      const int eight = 2 * group + i;
      const int point = best.codes[group].points[i];
      block.qs[eight] = static_cast<u8>(point & 255);
      put_bits(block.qh[eight / 4], point >> 8, 2 * (eight & 3));
      block.signs[eight] = all.signs[eight];
    }
  }
}

void encode_search(const float* x, const float* weights, BlockIQ3_XXS& block) {
  const Magnitudes<BlockIQ3_XXS> all(x, weights, true);
  const auto best = choose<BlockIQ3_XXS>(all.x, weights, kIq3XxsRange);
  block.d = finite_half(best.d).bits;
  for (int group = 0; group < 8 && best.d != 0; ++group) {
    u32 word = static_cast<u32>(best.scale[group] / 2) << 28;
    for (int i = 0; i < 8; ++i) {
      block.qs[8 * group + i] = static_cast<u8>(best.codes[group].points[i]);
    }
    for (int i = 0; i < 4; ++i) word |= (all.signs[4 * group + i] & 127u) << (7 * i);
    put_word(block.signs + 4 * group, word);
  }
}

void encode_search(const float* x, const float* weights, BlockIQ3_S& block) {
  const Magnitudes<BlockIQ3_S> all(x, weights, false);
  const auto best = choose<BlockIQ3_S>(all.x, weights, kIq3SRange);
  block.d = finite_half(best.d).bits;
  for (int group = 0; group < 8 && best.d != 0; ++group) {
    put_bits(block.scales[group / 2], best.scale[group] / 2, 4 * (group & 1));
    for (int i = 0; i < 8; ++i) {
      const int point = best.codes[group].points[i];
      block.qs[8 * group + i] = static_cast<u8>(point & 255);
      put_bits(block.qh[group], point >> 8, i);
    }
    for (int i = 0; i < 4; ++i) block.signs[4 * group + i] = all.signs[4 * group + i];
  }
}

void encode_search(const float* x, const float* weights, BlockIQ1_S& block) {
  const auto best = choose<BlockIQ1_S>(x, weights, kIq1Range);
  block.d = finite_half(best.d).bits;
  for (int group = 0; group < 8 && best.d != 0; ++group) {
    const auto& codes = best.codes[group];
    u32 high = static_cast<u32>(best.scale[group] / 2) << 12;
    if (codes.negative[0]) high |= 0x8000u;
    for (int i = 0; i < 4; ++i) {
      block.qs[4 * group + i] = static_cast<u8>(codes.points[i] & 255);
      high |= static_cast<u32>(codes.points[i] >> 8) << (3 * i);
    }
    block.qh[group] = static_cast<u16>(high);
  }
}

void encode_search(const float* x, const float* weights, BlockIQ1_M& block) {
  const auto best = choose<BlockIQ1_M>(x, weights, kIq1Range);
  const u16 d = finite_half(best.d).bits;
  for (int part = 0; part < 4; ++part) {
    block.scales[part] = static_cast<u16>(((d >> (4 * part)) & 15) << 12);
  }
  for (int group = 0; group < 16 && best.d != 0; ++group) {
    const auto& codes = best.codes[group];
    u16& scales = block.scales[group / 4];
    scales = static_cast<u16>(scales | ((best.scale[group] / 2) << (3 * (group & 3))));
    for (int i = 0; i < 2; ++i) {
      block.qs[2 * group + i] = static_cast<u8>(codes.points[i] & 255);
      put_bits(block.qh[group], (codes.points[i] >> 8) | (codes.negative[i] ? 8 : 0), 4 * i);
    }
  }
}

}  // namespace rbee::quant
