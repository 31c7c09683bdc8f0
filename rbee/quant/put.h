#pragma once
// The inverse of quant_of and scale_of in backends/shared/quant_blocks.h: stores integers in a
// block whose bytes are all zero.

#include "backends/shared/code_book_blocks.h"

namespace rbee::quant {

using namespace shared;  // the block types and their accessors

inline void put_bits(u8& byte, int bits, int shift) {
  byte = static_cast<u8>(byte | (bits << shift));
}
inline void put_word(u8* bytes, u32 word) {
  for (int i = 0; i < 4; ++i) bytes[i] = static_cast<u8>(word >> (8 * i));
}
inline void put_nibble(u8* qs, int i, int q) {
  put_bits(qs[i & 15], q, (i >> 4) << 2);
}
inline void put_nibble_k(u8* qs, int i, int q) {
  put_bits(qs[((i >> 6) << 5) + (i & 31)], q, (i >> 3) & 4);
}
inline void put_crumb(u8* qs, int i, int q) {
  put_bits(qs[((i >> 7) << 5) + (i & 31)], q, (i >> 4) & 6);
}
inline void put_scale_min_k4(u8* packed, int group, int q, bool min) {
  const int top = min ? 4 : 0;
  if (group < 4) {
    put_bits(packed[group + top], q, 0);
    return;
  }
  put_bits(packed[group + 4], q & 15, top);
  put_bits(packed[group - 4 + top], q >> 4, 6);
}

// put_quant(block, i, q): makes quant_of(block, i) equal q; for the iq4 types q is the index of the
// code, for mxfp4 the code's bits.
inline void put_quant(BlockQ4_0& b, int i, int q) {
  put_nibble(b.qs, i, q + 8);
}
inline void put_quant(BlockQ4_1& b, int i, int q) {
  put_nibble(b.qs, i, q);
}
inline void put_quant(BlockQ5_0& b, int i, int q) {
  put_nibble(b.qs, i, (q + 16) & 15);
  put_bits(b.qh[i >> 3], (q + 16) >> 4, i & 7);
}
inline void put_quant(BlockQ5_1& b, int i, int q) {
  put_nibble(b.qs, i, q & 15);
  put_bits(b.qh[i >> 3], q >> 4, i & 7);
}
inline void put_quant(BlockQ2_K& b, int i, int q) {
  put_crumb(b.qs, i, q);
}
inline void put_quant(BlockQ3_K& b, int i, int q) {
  put_crumb(b.qs, i, (q + 4) & 3);
  put_bits(b.hmask[i & 31], (q + 4) >> 2, i >> 5);
}
inline void put_quant(BlockQ4_K& b, int i, int q) {
  put_nibble_k(b.qs, i, q);
}
inline void put_quant(BlockQ5_K& b, int i, int q) {
  put_nibble_k(b.qs, i, q & 15);
  put_bits(b.qh[i & 31], q >> 4, i >> 5);
}
inline void put_quant(BlockQ6_K& b, int i, int q) {
  put_bits(b.ql[((i >> 7) << 6) + (i & 63)], (q + 32) & 15, (i >> 4) & 4);
  put_crumb(b.qh, i, (q + 32) >> 4);
}
inline void put_quant(BlockIQ4_NL& b, int i, int code) {
  put_nibble(b.qs, i, code);
}
inline void put_quant(BlockIQ4_XS& b, int i, int code) {
  put_nibble(b.qs + ((i >> 5) << 4), i & 31, code);
}
inline void put_quant(BlockMXFP4& b, int i, int code) {
  put_nibble(b.qs, i, code);
}

inline void put_quant(BlockNVFP4& b, int i, int code) {
  put_bits(b.qs[((i >> 4) << 3) + (i & 7)], code, (i >> 1) & 4);
}

// Makes quant_of(block, i) equal trits[i], -1 to 1, for all elements.
inline void put_trits(BlockTQ1_0& b, const int* trits) {
  u32 numbers[52] = {};  // of base 3, of qs and then qh
  for (int i = 0; i < BlockTQ1_0::kElements; ++i) {
    const int byte = i >= 240 ? 48 + (i & 3) : i < 160 ? i & 31 : 32 + (i & 15);
    numbers[byte] = 3 * numbers[byte] + static_cast<u32>(trits[i] + 1);
  }
  for (int byte = 0; byte < 52; ++byte) {
    if (byte >= 48) numbers[byte] *= 3;  // these have four digits
    const auto stored = static_cast<u8>((numbers[byte] * 256 + 242) / 243);
    (byte < 48 ? b.qs[byte] : b.qh[byte - 48]) = stored;
  }
}

// put_scale(block, group, s): stores the integer that multiplies block.d for a group.
inline void put_scale(BlockQ2_K& b, int group, int s) {
  put_bits(b.scales[group], s, 0);
}
inline void put_scale(BlockQ3_K& b, int group, int s) {
  put_bits(b.scales[group & 7], (s + 32) & 15, (group >> 3) << 2);
  put_bits(b.scales[8 + (group & 3)], (s + 32) >> 4, (group >> 2) << 1);
}
inline void put_scale(BlockQ4_K& b, int group, int s) {
  put_scale_min_k4(b.scales, group, s, false);
}
inline void put_scale(BlockQ5_K& b, int group, int s) {
  put_scale_min_k4(b.scales, group, s, false);
}
inline void put_scale(BlockQ6_K& b, int group, int s) {
  b.scales[group] = static_cast<i8>(s);
}
inline void put_scale(BlockIQ4_XS& b, int group, int s) {
  put_bits(b.scales_l[group >> 1], (s + 32) & 15, (group & 1) << 2);
  b.scales_h = static_cast<u16>(b.scales_h | (((s + 32) >> 4) << (2 * group)));
}

// put_min(block, group, s): stores the integer that multiplies block.dmin for a group.
inline void put_min(BlockQ2_K& b, int group, int s) {
  put_bits(b.scales[group], s, 4);
}
inline void put_min(BlockQ4_K& b, int group, int s) {
  put_scale_min_k4(b.scales, group, s, true);
}
inline void put_min(BlockQ5_K& b, int group, int s) {
  put_scale_min_k4(b.scales, group, s, true);
}

}  // namespace rbee::quant
