#pragma once
// Formats of few bits as packed_weight.h has the others, which includes this. Their codes are read
// as signed bytes, so that integer dot products take them as they are; what the planes of a group
// of 32 elements hold:
//
//            low                           high          scale                  super
//   iq1_s    4 bytes of points             -             u16 of the file        d
//   iq1_m    4 bytes of points             -             two bytes of qh        d, scales: 8 bytes
//   iq2_xxs  points, word of signs         -             -                      d
//   iq2_xs   four codes of 16 bits         -             byte of scales         d
//   iq2_s    points, word of signs         -             bytes of qh, scales    d
//   iq3_xxs  8 bytes of points             signs         -                      d
//   iq3_s    8 bytes of points             signs         qh; 4 bytes of scales  d
//   tq1_0    -                             -             13 words (trit_word)   d
//   tq2_0, nvfp4: as formats with plain codes; nvfp4's scale is two bytes
//
// A kernel may have a copy of the code book elsewhere; CodeGroup::codes() takes where it is.

#include "backends/shared/code_book_blocks.h"

namespace rbee {
namespace shared {

template <>
struct PackedFormat<BlockIQ1_S> : PackedPlanes<1, 0, 0, 2, 32, 2, CodeBook::points> {};
template <>
struct PackedFormat<BlockIQ1_M> : PackedPlanes<1, 0, 0, 2, 32, 8, CodeBook::points> {};
template <>
struct PackedFormat<BlockIQ2_XXS> : PackedPlanes<2, 0, 0, 2, 256, 0, CodeBook::points> {};
template <>
struct PackedFormat<BlockIQ2_XS> : PackedPlanes<2, 0, 0, 1, 32, 2, CodeBook::points> {};
template <>
struct PackedFormat<BlockIQ2_S> : PackedPlanes<2, 0, 0, 2, 32, 2, CodeBook::points> {};
template <>
struct PackedFormat<BlockIQ3_XXS> : PackedPlanes<2, 1, 0, 2, 256, 0, CodeBook::points> {};
template <>
struct PackedFormat<BlockIQ3_S> : PackedPlanes<2, 1, 0, 12, 256, 2, CodeBook::points> {};
template <>
struct PackedFormat<BlockTQ1_0> : PackedPlanes<0, 0, 0, 52, 256, 2, CodeBook::points> {};
template <>
struct PackedFormat<BlockTQ2_0> : PackedPlanes<2, 0, 1, 2, 256> {};
template <>
struct PackedFormat<BlockNVFP4> : PackedPlanes<4, 0, 0, 2, 32, 0, CodeBook::e2m1> {};

// Four digits to the bytes of a word: 2 bits each of 8, 3 bits each of 12.
RB_FN u32 spread_twos(u32 digits) {
  const u32 pairs = (digits | (digits << 12)) & 0x000f000fu;
  return (pairs | (pairs << 6)) & 0x03030303u;
}
RB_FN u32 spread_threes(u32 digits) {
  const u32 pairs = (digits | (digits << 10)) & 0x003f003fu;
  return (pairs | (pairs << 5)) & 0x07070707u;
}
// Bytes, none of them 0, made negative where one of four bits is set.
RB_FN u32 with_signs(u32 bytes, u32 bits) {
  const u32 ones = ((bits & 15u) * 0x00204081u) & 0x01010101u;
  return (bytes ^ ((ones << 8) - ones)) + ones;
}
// iq2_value(), iq3_xxs_value() and iq3_s_value() of the bytes of a word.
RB_FN u32 iq2_bytes(u32 digits) {
  return 17 * digits + 0x08080808u + ((digits >> 1) & 0x01010101u);
}
RB_FN u32 iq3_xxs_bytes(u32 digits) {
  return 8 * digits + 0x04040404u + (((digits + 0x01010101u) >> 2) & 0x02020202u);
}
RB_FN u32 iq3_s_bytes(u32 digits) {
  return 2 * digits + 0x01010101u;
}
// eight_times() of four digits: bytes are added without their signs, which the last step sets.
RB_FN u32 iq1_bytes(u32 digits, bool negative) {
  return (8 * digits + (negative ? 0x77777777u : 0x79797979u)) ^ 0x80808080u;
}

// `second` or `first`; a choice clang would make between their addresses, in scratch memory.
RB_FN u32 one_of(u32 first, u32 second, bool choose_second) {
  return first ^ ((first ^ second) & (choose_second ? ~0u : 0u));
}
RB_FN u32 one_of(const RB_COPIED Words2& both, int index) {
  return one_of(both.words[0], both.words[1], index != 0);
}

// What the planes hold of 32 elements of a row: load(row, at, group), then codes(book, w) for
// elements 4 w + 0..3 as signed bytes. Book: a pointer to the code book's words.
template <class Block>
struct CodeGroup;

template <>
struct CodeGroup<BlockIQ1_S> {
  u32 points, high;
  RB_FN void load(const RB_GLOBAL u8* row, const RB_COPIED PackedLayout& at, i64 group) {
    points = read_u32(row + 4 * group);
    high = read_u16(row + at.scale + 2 * group);
  }
  template <class Book>
  RB_FN u32 codes(Book book, int w) const {
    const int eight = w / 2;
    const u32 point = ((points >> (8 * eight)) & 255u) | (((high >> (3 * eight)) & 7u) << 8);
    return iq1_bytes(spread_twos((book[point] >> (8 * (w & 1))) & 255u), (high & 0x8000u) != 0);
  }
};
template <>
struct CodeGroup<BlockIQ1_M> {
  u32 points, high;
  RB_FN void load(const RB_GLOBAL u8* row, const RB_COPIED PackedLayout& at, i64 group) {
    points = read_u32(row + 4 * group);
    high = read_u16(row + at.scale + 2 * group);
  }
  template <class Book>
  RB_FN u32 codes(Book book, int w) const {
    const int eight = w / 2;
    const u32 four = high >> (4 * eight);
    const u32 point = ((points >> (8 * eight)) & 255u) | ((four & 7u) << 8);
    return iq1_bytes(spread_twos((book[point] >> (8 * (w & 1))) & 255u), (four & 8u) != 0);
  }
};

template <>
struct CodeGroup<BlockIQ2_XXS> {
  u32 points, signs;
  RB_FN void load(const RB_GLOBAL u8* row, const RB_COPIED PackedLayout&, i64 group) {
    const Words2 both = read_words2(row + 8 * group);
    points = both.words[0];
    signs = both.words[1];
  }
  template <class Book>
  RB_FN u32 codes(Book book, int w) const {
    const u32 point = book[(points >> (8 * (w / 2))) & 255u];
    const u32 eight = even_signs((signs >> (7 * (w / 2))) & 127u);
    return with_signs(iq2_bytes(spread_twos((point >> (8 * (w & 1))) & 255u)),
                      eight >> (4 * (w & 1)));
  }
};
template <>
struct CodeGroup<BlockIQ2_XS> {
  Words2 all;
  RB_FN void load(const RB_GLOBAL u8* row, const RB_COPIED PackedLayout&, i64 group) {
    all = read_words2(row + 8 * group);
  }
  template <class Book>
  RB_FN u32 codes(Book book, int w) const {
    const u32 code = (one_of(all, w / 4) >> (16 * (w / 2 & 1))) & 0xffffu;
    const u32 point = book[code & 511u];
    return with_signs(iq2_bytes(spread_twos((point >> (8 * (w & 1))) & 255u)),
                      even_signs(code >> 9) >> (4 * (w & 1)));
  }
};
template <>
struct CodeGroup<BlockIQ2_S> {
  u32 points, signs, high;
  RB_FN void load(const RB_GLOBAL u8* row, const RB_COPIED PackedLayout& at, i64 group) {
    const Words2 both = read_words2(row + 8 * group);
    points = both.words[0];
    signs = both.words[1];
    high = read_u8(row + at.scale + 2 * group);
  }
  template <class Book>
  RB_FN u32 codes(Book book, int w) const {
    const int eight = w / 2;
    const u32 index = ((points >> (8 * eight)) & 255u) | (((high >> (2 * eight)) & 3u) << 8);
    return with_signs(iq2_bytes(spread_twos((book[index] >> (8 * (w & 1))) & 255u)),
                      signs >> (4 * w));
  }
};

template <>
struct CodeGroup<BlockIQ3_XXS> {
  Words2 points;
  u32 signs;
  RB_FN void load(const RB_GLOBAL u8* row, const RB_COPIED PackedLayout& at, i64 group) {
    points = read_words2(row + 8 * group);
    signs = read_u32(row + at.high + 4 * group);
  }
  template <class Book>
  RB_FN u32 codes(Book book, int w) const {
    const u32 point = book[(one_of(points, w / 4) >> (8 * (w & 3))) & 255u];
    const u32 eight = even_signs((signs >> (7 * (w / 2))) & 127u);
    return with_signs(iq3_xxs_bytes(spread_threes(point)), eight >> (4 * (w & 1)));
  }
};
template <>
struct CodeGroup<BlockIQ3_S> {
  Words2 points;
  u32 signs, high;
  RB_FN void load(const RB_GLOBAL u8* row, const RB_COPIED PackedLayout& at, i64 group) {
    points = read_words2(row + 8 * group);
    signs = read_u32(row + at.high + 4 * group);
    high = read_u8(row + at.scale + group / 8 * 12 + group % 8);
  }
  template <class Book>
  RB_FN u32 codes(Book book, int w) const {
    const u32 index = ((one_of(points, w / 4) >> (8 * (w & 3))) & 255u) | (((high >> w) & 1u) << 8);
    return with_signs(iq3_s_bytes(spread_threes(book[index])), signs >> (4 * w));
  }
};

template <>
struct CodeGroup<BlockTQ1_0> {
  u32 first, second, third;  // the words that the group's eight steps lie in
  int step;                  // of the first word, 0 to 4
  RB_FN void load(const RB_GLOBAL u8* row, const RB_COPIED PackedLayout& at, i64 group) {
    const RB_GLOBAL u8* words = row + at.scale + group / 8 * 52;
    const int begin = static_cast<int>(group % 8) * 8;
    const int word = begin / 5;
    step = begin - 5 * word;
    first = read_u32(words + 4 * word);
    second = read_u32(words + 4 * word + 4);
    third = read_u32(words + 4 * (word < 10 ? word + 2 : 12));
  }
  template <class Book>
  RB_FN u32 codes(Book, int w) const {
    const int at = step + w;
    const u32 numbers = one_of(one_of(first, second, at >= 5), third, at >= 10);
    const u32 power = power_of_3(at < 5 ? at : at < 10 ? at - 5 : at - 10);
    const u32 even = (((numbers & 0x00ff00ffu) * power) & 0x00ff00ffu) * 3;
    const u32 odd = ((((numbers >> 8) & 0x00ff00ffu) * power) & 0x00ff00ffu) * 3;
    const u32 digits = ((even >> 8) & 0x00030003u) | (odd & 0x03000300u);
    return (digits + 0x7f7f7f7fu) ^ 0x80808080u;  // minus 1
  }
};

// packed_codes() and packed_scale() of one format each.
#define RB_CODES_OF_GROUP(Block)                                                           \
  template <>                                                                              \
  RB_FN u32 packed_codes<Block>(const RB_GLOBAL u8* row, const RB_COPIED PackedLayout& at, \
                                i64 column) {                                              \
    CodeGroup<Block> group;                                                                \
    group.load(row, at, column / 32);                                                      \
    return group.codes(BookOf<Block>::words(), static_cast<int>(column / 4 % 8));          \
  }
RB_CODES_OF_GROUP(BlockIQ1_S)
RB_CODES_OF_GROUP(BlockIQ1_M)
RB_CODES_OF_GROUP(BlockIQ2_XXS)
RB_CODES_OF_GROUP(BlockIQ2_XS)
RB_CODES_OF_GROUP(BlockIQ2_S)
RB_CODES_OF_GROUP(BlockIQ3_XXS)
RB_CODES_OF_GROUP(BlockIQ3_S)
RB_CODES_OF_GROUP(BlockTQ1_0)
#undef RB_CODES_OF_GROUP

namespace packed {

// d * (scale + 1/2) * unit of both halves of a group.
RB_FN PackedScale half_more_of(u32 d, u32 first, u32 second, float unit) {
  const float size = low_half(d);
  return PackedScale{{size * (0.5f + static_cast<float>(first)) * unit,
                      size * (0.5f + static_cast<float>(second)) * unit},
                     {-0.0f, -0.0f}};
}
// d * (2 scale + 1) / 8
RB_FN float eighth_of(float d, u32 scale) {
  return d * static_cast<float>(2 * scale + 1) * 0.125f;
}

}  // namespace packed

template <>
struct StoredScale<BlockIQ1_S> {
  u32 high, d;
  template <class From>
  RB_FN void load(From scale, From super, i64 group) {
    high = read_u16(scale + 2 * group);
    d = read_u16(super + group / 8 * 2);
  }
  RB_FN PackedScale value(int) const {
    return packed::both(packed::eighth_of(packed::low_half(d), (high >> 12) & 7u), -0.0f);
  }
};
template <>
struct StoredScale<BlockIQ1_M> {
  u32 low, high;  // four words of 16 bits: scales of 64 elements and a part of d each
  template <class From>
  RB_FN void load(From, From super, i64 group) {
    low = read_u32(super + group / 8 * 8);
    high = read_u32(super + group / 8 * 8 + 4);
  }
  RB_FN PackedScale value(int g) const {
    const u32 bits = ((low >> 12) & 0x000fu) | ((low >> 24) & 0x00f0u) | ((high >> 4) & 0x0f00u) |
                     ((high >> 16) & 0xf000u);
    const u32 word = one_of(low, high, g >= 4);
    const u32 scales = word >> (16 * (g / 2 & 1) + 6 * (g & 1));
    const float d = packed::low_half(bits);
    return PackedScale{
        {packed::eighth_of(d, scales & 7u), packed::eighth_of(d, (scales >> 3) & 7u)},
        {-0.0f, -0.0f}};
  }
};
// Four bits for each 16 elements.
template <int kBytes>
struct NibbleScales {
  u32 nibbles, d;
  template <class From>
  RB_FN void load(From scale, From super, i64 group) {
    nibbles = read_u8(scale + kBytes * group + (kBytes - 1));
    d = read_u16(super + group / 8 * 2);
  }
  RB_FN PackedScale value(int) const {
    return packed::half_more_of(d, nibbles & 15u, nibbles >> 4, 0.25f);
  }
};
template <>
struct StoredScale<BlockIQ2_XS> : NibbleScales<1> {};
template <>
struct StoredScale<BlockIQ2_S> : NibbleScales<2> {};
template <>
struct StoredScale<BlockIQ3_S> {
  u32 nibbles, d;
  template <class From>
  RB_FN void load(From scale, From super, i64 group) {
    nibbles = read_u8(scale + group / 8 * 12 + 8 + group % 8 / 2);
    d = read_u16(super + group / 8 * 2);
  }
  RB_FN PackedScale value(int g) const {
    const u32 scale = 1 + 2 * ((nibbles >> (4 * (g & 1))) & 15u);
    return packed::both(packed::low_half(d) * static_cast<float>(scale), -0.0f);
  }
};
template <>
struct StoredScale<BlockTQ1_0> {
  u32 d;
  template <class From>
  RB_FN void load(From, From super, i64 group) {
    d = read_u16(super + group / 8 * 2);
  }
  RB_FN PackedScale value(int) const { return packed::both(packed::low_half(d), -0.0f); }
};
template <>
struct StoredScale<BlockTQ2_0> {
  u32 d;
  template <class From>
  RB_FN void load(From scale, From, i64 group) {
    d = read_u16(scale + group / 8 * 2);
  }
  RB_FN PackedScale value(int) const { return packed::both(packed::low_half(d), -0.0f); }
};
template <>
struct StoredScale<BlockNVFP4> {
  u32 pair;
  template <class From>
  RB_FN void load(From scale, From, i64 group) {
    pair = read_u16(scale + 2 * group);
  }
  RB_FN PackedScale value(int) const {
    return PackedScale{
        {ue4m3_halved(static_cast<u8>(pair)), ue4m3_halved(static_cast<u8>(pair >> 8))},
        {-0.0f, -0.0f}};
  }
};

// Four bits of scale above the signs of a group.
template <class Block>
RB_FN PackedScale scale_above_signs(const RB_GLOBAL u8* row, const RB_COPIED PackedLayout& at,
                                    i64 group, u32 signs, float unit) {
  const u32 d = read_u16(row + at.scale + group / 8 * 2);
  return packed::half_more_of(d, signs >> 28, signs >> 28, unit);
}
template <>
RB_FN PackedScale packed_scale<BlockIQ2_XXS>(const RB_GLOBAL u8* row,
                                             const RB_COPIED PackedLayout& at, i64 group) {
  return scale_above_signs<BlockIQ2_XXS>(row, at, group, read_u32(row + 8 * group + 4), 0.25f);
}
template <>
RB_FN PackedScale packed_scale<BlockIQ3_XXS>(const RB_GLOBAL u8* row,
                                             const RB_COPIED PackedLayout& at, i64 group) {
  return scale_above_signs<BlockIQ3_XXS>(row, at, group, read_u32(row + at.high + 4 * group), 0.5f);
}

}  // namespace shared
}  // namespace rbee
