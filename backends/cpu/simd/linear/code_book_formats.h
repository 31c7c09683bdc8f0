#pragma once
// The formats of few bits, as formats.h defines formats: include after it.
//
// Points of a code book are looked up for two at a time, in the halves of a row's lane: of bytes
// 0 and 2 of a word of indices, or of 1 and 3. Their digits, spread over the bytes of the lane, and
// a mark for what is negative name one of 16 bytes: the values plus kShift.

#include <iterator>

#include "backends/shared/code_books.h"

namespace {

namespace books = rbee::shared;

// A book with the digits of its points in bytes: of 8 digits in 64 bits, of 4 in 32.
template <typename Point, int kCount>
struct SpreadBook {
  Point points[kCount];
};
template <typename Point, int kCount>
constexpr SpreadBook<Point, kCount> spread(const uint16_t (&words)[kCount]) {
  constexpr int kDigits = sizeof(Point), kBits = kDigits == 8 ? 2 : 3;
  SpreadBook<Point, kCount> out{};
  for (int i = 0; i < kCount; ++i) {
    for (int digit = 0; digit < kDigits; ++digit) {
      const Point value = words[i] >> (kBits * digit) & ((1 << kBits) - 1);
      out.points[i] |= value << (8 * digit);
    }
  }
  return out;
}
template <typename Point, const auto& kBook>
constexpr auto kSpread = spread<Point>(kBook);

// Of each two points in `pair`, the one in half `half` of the lane; digits in its bytes.
[[gnu::always_inline]] inline Bytes digits_of_8(Bytes pair, int half, int four) {
  const Bytes eight = both(lanes_right(pair, 16 * half + 8 * four), lanes_of(0xff));
  const Bytes twos = both(either(eight, lanes_left(eight, 12)), lanes_of(0x000f000f));
  return both(either(twos, lanes_left(twos, 6)), lanes_of(0x03030303));
}
[[gnu::always_inline]] inline Bytes digits_of_4(Bytes pair, int half) {
  const Bytes all = both(lanes_right(pair, 16 * half), lanes_of(0xfff));
  const Bytes twos = both(either(all, lanes_left(all, 10)), lanes_of(0x003f003f));
  return both(either(twos, lanes_left(twos, 5)), lanes_of(0x07070707));
}

// Digits 4 four to 4 four + 3 of the points that half `half` of each row's lane of `index` names.
template <const auto& kBook>
[[gnu::always_inline]] inline Bytes digits_of(Bytes index, int half, int four) {
  if constexpr (std::size(kBook) >= kSpreadFrom) {
    return spread_digits(kSpread<uint64_t, kBook>.points, index, half, four);
  } else {
    return digits_of_8(look_up_words<std::size(kBook)>(kBook, index), half, four);
  }
}
// The same of points of 4 digits.
template <const auto& kBook>
[[gnu::always_inline]] inline Bytes digits_of(Bytes index, int half) {
  if constexpr (std::size(kBook) >= kSpreadFrom) {
    return spread_digits(kSpread<uint32_t, kBook>.points, index, half);
  } else {
    return digits_of_4(look_up_words<std::size(kBook)>(kBook, index), half);
  }
}

// Bytes `odd` and `odd` + 2 of a word of indices, in halves; `high` has what is above them.
[[gnu::always_inline]] inline Bytes index_pair(Bytes points, int odd) {
  return both(lanes_right(points, 8 * odd), lanes_of(0x00ff00ff));
}
// The bits of `lanes` from `low` on to bit 8 of the first half, from `high` on to the other's.
[[gnu::always_inline]] inline Bytes high_pair(Bytes lanes, int low, int high, uint32_t mask) {
  const Bytes first = both(lanes_left(lanes, 8 - low), lanes_of(mask << 8));
  return either(first, both(lanes_left(lanes, 24 - high), lanes_of(mask << 24)));
}

// The bit for each element of step s in a byte of signs of eight.
constexpr uint32_t signs_of_step(int s) {
  return s % 2 == 0 ? 0x08040201u : 0x80402010u;
}

// Bit 7 of bytes of 7 bits that makes the number of set bits even.
alignas(16) constexpr unsigned char kOddNibbles[16] = {0, 0x80, 0x80, 0, 0x80, 0,    0, 0x80, 0x80,
                                                       0, 0,    0x80, 0, 0x80, 0x80, 0};
[[gnu::always_inline]] inline Bytes even_signs(Bytes seven) {
  const Bytes folded = differing(seven, both(shift_right(seven, 4), bytes_of(7)));
  return either(seven, look_up(kOddNibbles, both(folded, bytes_of(15))));
}
// Four times 7 bits of a word to its bytes.
[[gnu::always_inline]] inline Bytes sevens(Bytes word) {
  const Bytes low = either(both(word, lanes_of(0x7f)), both(lanes_left(word, 1), lanes_of(0x7f00)));
  return either(low, either(both(lanes_left(word, 2), lanes_of(0x7f0000)),
                            both(lanes_left(word, 3), lanes_of(0x7f000000))));
}

// Values plus the format's shift; from the ninth on those of marked digits.
alignas(16) constexpr unsigned char kIq1Values[16] = {2, 10, 18, 0, 0, 0, 0, 0, 0, 8, 16};
alignas(16) constexpr unsigned char kIq2Values[16] = {51, 68, 86, 0, 0, 0, 0, 0, 35, 18, 0};
alignas(16) constexpr unsigned char kIq3XxsValues[16] = {66, 74, 82, 90, 98, 106, 114, 124,
                                                         58, 50, 42, 34, 26, 18,  10,  0};
alignas(16) constexpr unsigned char kIq3SValues[16] = {16, 18, 20, 22, 24, 26, 28, 30,
                                                       14, 12, 10, 8,  6,  4,  2,  0};

// (scale + 1/2) * unit * d
template <int kShift>
[[gnu::always_inline]] inline Scale half_more(Floats d, Floats scale, float unit) {
  return shifted(times(times(d, plus(scale, all(0.5f))), all(unit)), kShift);
}
// (2 scale + 1) * unit * d
template <int kShift>
[[gnu::always_inline]] inline Scale odd_scale(Floats d, Floats scale, float unit) {
  return shifted(times(times(d, fused(scale, all(2), all(1))), all(unit)), kShift);
}

struct FormatIQ1_S : EightGroups<panel::PanelIQ1_S, 32, 18, 9> {
  [[gnu::always_inline]] static Bytes step(const Record& r, int g, int s, int part) {
    const Bytes high = load_lanes(r.groups[g].high, part);
    const int odd = s / 2 % 2;
    const Bytes index = either(index_pair(load_step(r.groups[g].points, part), odd),
                               high_pair(high, 3 * odd, 3 * odd + 6, 7));
    const Bytes digits = digits_of<books::kBookIQ1>(index, s / 4, s % 2);
    return look_up(kIq1Values, marked(digits, spread_byte(high, 1), 0x80808080u));
  }
  [[gnu::always_inline]] static Scale scale(const Record& r, const Head& h, int g, int, int part) {
    const Bytes scale = both(lanes_right(load_lanes(r.groups[g].high, part), 12), lanes_of(7));
    return odd_scale<kShift>(h.d, numbers(scale), 0.125f);
  }
};

struct FormatIQ1_M : EightGroups<panel::PanelIQ1_M, 16, 18, 9> {
  [[gnu::always_inline]] static Bytes step(const Record& r, int g, int s, int part) {
    const Bytes high = load_lanes(r.groups[g].high, part);
    const int odd = s / 2 % 2;
    const Bytes index = either(index_pair(load_step(r.groups[g].points, part), odd),
                               high_pair(high, 4 * odd, 4 * odd + 8, 7));
    const Bytes digits = digits_of<books::kBookIQ1>(index, s / 4, s % 2);
    const uint32_t bit = odd == 0 ? 0x08080808u : 0x80808080u;
    return look_up(kIq1Values, marked(digits, spread_byte(high, s / 4), bit));
  }
  [[gnu::always_inline]] static Scale scale(const Record& r, const Head& h, int g, int half,
                                            int part) {
    return odd_scale<kShift>(h.d, load_nibbles(r.groups[g].scale, part, 4 * half), 0.125f);
  }
};

// Steps of IQ2: `index` names the points of inputs 8 odd and 8 odd + 16, `signs` has those of the
// step's eight.
template <const auto& kBook>
[[gnu::always_inline]] inline Bytes iq2_step(Bytes index, Bytes signs, int s) {
  return look_up(kIq2Values,
                 marked(digits_of<kBook>(index, s / 4, s % 2), signs, signs_of_step(s)));
}

struct FormatIQ2_XXS : EightGroups<panel::PanelIQ2_XXS, 32, 86, 43> {
  [[gnu::always_inline]] static Bytes step(const Record& r, int g, int s, int part) {
    const Bytes index = index_pair(load_step(r.groups[g].points, part), s / 2 % 2);
    const Bytes signs = even_signs(sevens(load_step(r.groups[g].signs, part)));
    return iq2_step<books::kBookIQ2_XXS>(index, spread_byte(signs, s / 2), s);
  }
  [[gnu::always_inline]] static Scale scale(const Record& r, const Head& h, int g, int, int part) {
    const Bytes scale = lanes_right(load_step(r.groups[g].signs, part), 28);
    return half_more<kShift>(h.d, numbers(scale), 0.25f);
  }
};

struct FormatIQ2_XS : EightGroups<panel::PanelIQ2_XS, 16, 86, 43> {
  [[gnu::always_inline]] static Bytes step(const Record& r, int g, int s, int part) {
    const Bytes codes = load_step(r.groups[g].codes[s / 2 % 2], part);
    const Bytes index = both(codes, lanes_of(0x01ff01ff));
    const Bytes signs = even_signs(both(lanes_right(codes, 9), lanes_of(0x007f007f)));
    return iq2_step<books::kBookIQ2_XS>(index, spread_byte(signs, s / 4 * 2), s);
  }
  [[gnu::always_inline]] static Scale scale(const Record& r, const Head& h, int g, int half,
                                            int part) {
    return half_more<kShift>(h.d, load_nibbles(r.groups[g].scale, part, 4 * half), 0.25f);
  }
};

struct FormatIQ2_S : EightGroups<panel::PanelIQ2_S, 16, 86, 43> {
  [[gnu::always_inline]] static Bytes step(const Record& r, int g, int s, int part) {
    const int odd = s / 2 % 2;
    const Bytes high = load_lanes(r.groups[g].high, part);
    const Bytes index = either(index_pair(load_step(r.groups[g].points, part), odd),
                               high_pair(high, 2 * odd, 2 * odd + 4, 3));
    const Bytes signs = load_step(r.groups[g].signs, part);
    return iq2_step<books::kBookIQ2_S>(index, spread_byte(signs, s / 2), s);
  }
  [[gnu::always_inline]] static Scale scale(const Record& r, const Head& h, int g, int half,
                                            int part) {
    return half_more<kShift>(h.d, load_nibbles(r.groups[g].scale, part, 4 * half), 0.25f);
  }
};

struct FormatIQ3_XXS : EightGroups<panel::PanelIQ3_XXS, 32, 124, 62> {
  [[gnu::always_inline]] static Bytes step(const Record& r, int g, int s, int part) {
    const Bytes index = index_pair(load_step(r.groups[g].points[s / 4], part), s % 2);
    const Bytes digits = digits_of<books::kBookIQ3_XXS>(index, s / 2 % 2);
    const Bytes signs = even_signs(sevens(load_step(r.groups[g].signs, part)));
    return look_up(kIq3XxsValues, marked(digits, spread_byte(signs, s / 2), signs_of_step(s)));
  }
  [[gnu::always_inline]] static Scale scale(const Record& r, const Head& h, int g, int, int part) {
    const Bytes scale = lanes_right(load_step(r.groups[g].signs, part), 28);
    return half_more<kShift>(h.d, numbers(scale), 0.5f);
  }
};

struct FormatIQ3_S : EightGroups<panel::PanelIQ3_S, 32, 30, 15> {
  [[gnu::always_inline]] static Bytes step(const Record& r, int g, int s, int part) {
    const int first = s / 4 * 4 + s % 2;
    const Bytes index = either(index_pair(load_step(r.groups[g].points[s / 4], part), s % 2),
                               high_pair(load_lanes(r.groups[g].high, part), first, first + 2, 1));
    const Bytes digits = digits_of<books::kBookIQ3_S>(index, s / 2 % 2);
    const Bytes signs = spread_byte(load_step(r.groups[g].signs, part), s / 2);
    return look_up(kIq3SValues, marked(digits, signs, signs_of_step(s)));
  }
  [[gnu::always_inline]] static Scale scale(const Record& r, const Head& h, int g, int, int part) {
    return odd_scale<kShift>(h.d, load_nibbles(r.scale[g / 2], part, g % 2 * 4), 1);
  }
};

struct FormatTQ1_0 : EightGroups<panel::PanelTQ1_0, 32, 2, 1> {
  [[gnu::always_inline]] static Bytes step(const Record& r, int g, int s, int part) {
    constexpr int kPowers[5] = {1, 3, 9, 27, 81};
    const int at = panel::kSteps * g + s;
    const Bytes numbers = load_step(r.words[at / 5], part);
    const int power = kPowers[at % 5];
    const Bytes odd = digits(lanes_right(numbers, 8), power);
    return either(digits(numbers, power), lanes_left(odd, 8));
  }
  [[gnu::always_inline]] static Scale scale(const Record&, const Head& h, int, int, int) {
    return shifted(h.d, kShift);
  }

 private:
  // Of the even bytes: the digit of base 3 in front of the point, once times `power`.
  [[gnu::always_inline]] static Bytes digits(Bytes numbers, int power) {
    const Bytes fractions = both(words_times(both(numbers, words_of(255)), power), words_of(255));
    return shift_right(words_times(fractions, 3), 8);
  }
};

struct FormatTQ2_0 : EightGroups<panel::PanelTQ2_0, 32, 3, 1> {
  [[gnu::always_inline]] static Bytes step(const Record& r, int g, int s, int part) {
    return crumbs(r.groups[g].low, s, part, 0);
  }
  [[gnu::always_inline]] static Scale scale(const Record&, const Head& h, int, int, int) {
    return shifted(h.d, kShift);
  }
};

struct FormatNVFP4 {
  using Record = panel::PanelNVFP4;
  static constexpr int kGroups = 2, kSpan = 16, kLargest = 24, kShift = 12;
  static constexpr bool kSigned = false;
  [[gnu::always_inline]] static Head head(const Record&, int) { return {all(0), all(0)}; }
  [[gnu::always_inline]] static Bytes step(const Record& r, int g, int s, int part) {
    return look_up(kE2m1Values, nibbles(r.groups[g].low, s, part));
  }
  [[gnu::always_inline]] static Scale scale(const Record& r, const Head&, int g, int half,
                                            int part) {
    // The exponent's bias is 7, not 127; a half, since values are doubled.
    const Bytes bits = lanes_left(load_lanes(r.groups[g].scale[half], part), 20);
    return shifted(times(as_floats(bits), all(0x1p119f)), kShift);
  }
};

}  // namespace
