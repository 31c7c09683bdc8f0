#pragma once
// Block formats: layouts, and the value of each element. C++14 subset without standard headers,
// read by CPU, CUDA, HIP and Metal. Formats: ggml's quantised types as its GGUF files store them,
// little-endian; MXFP4 from the OCP Microscaling specification 1.0 with ggml's element order; e4m3
// from the OCP 8-bit floating point specification 1.0, in groups that hold what FP8 checkpoints do.
//
// Every format is one formula: element i = d * q + m, where
//   (d, m) = scale_of(block, i / kGroup)   are shared by kGroup consecutive elements
//   q      = quant_of(block, i)            is an integer (or a value of the format's code book, or
//                                          of its float of one byte)
// rounded after the product and again after the sum, as ggml does. Formats without an offset have
// m = -0, which keeps the sign of a zero product.

#include "backends/shared/rb_fn.h"

namespace rbee {
namespace shared {

struct BlockScale {
  float d;
  float m;
};

struct BlockQ4_0 {
  enum { kElements = 32, kGroup = 32 };
  u16 d;      // f16
  u8 qs[16];  // element i: low nibble of qs[i], element 16 + i: high nibble; minus 8
};
struct BlockQ4_1 {
  enum { kElements = 32, kGroup = 32 };
  u16 d;  // f16
  u16 m;  // f16
  u8 qs[16];
};
struct BlockQ5_0 {
  enum { kElements = 32, kGroup = 32 };
  u16 d;      // f16
  u8 qh[4];   // bit i: the fifth bit of element i
  u8 qs[16];  // low four bits as in q4_0; minus 16
};
struct BlockQ5_1 {
  enum { kElements = 32, kGroup = 32 };
  u16 d;  // f16
  u16 m;  // f16
  u8 qh[4];
  u8 qs[16];
};
struct BlockQ8_0 {
  enum { kElements = 32, kGroup = 32 };
  u16 d;  // f16
  i8 qs[32];
};
struct BlockQ2_K {
  enum { kElements = 256, kGroup = 16 };
  u8 scales[16];  // low nibble: scale, high nibble: minimum, in units of d and dmin
  u8 qs[64];      // 2 bits: qs[32 h + l] >> 2 j is element 128 h + 32 j + l
  u16 d;          // f16
  u16 dmin;       // f16
};
struct BlockQ3_K {
  enum { kElements = 256, kGroup = 16 };
  u8 hmask[32];   // bit b of hmask[l]: third bit of element 32 b + l; clear means minus 4
  u8 qs[64];      // low 2 bits as in q2_k
  u8 scales[12];  // 16 scales of 6 bits, minus 32: nibbles of the first 8 bytes, then 2 bits each
  u16 d;          // f16
};
struct BlockQ4_K {
  enum { kElements = 256, kGroup = 32 };
  u16 d;          // f16
  u16 dmin;       // f16
  u8 scales[12];  // 8 scales and 8 minima of 6 bits, see scale_min_k4
  u8 qs[128];     // low nibble of qs[32 p + l]: element 64 p + l, high nibble: 64 p + 32 + l
};
struct BlockQ5_K {
  enum { kElements = 256, kGroup = 32 };
  u16 d;          // f16
  u16 dmin;       // f16
  u8 scales[12];  // as in q4_k
  u8 qh[32];      // bit g of qh[l]: fifth bit of element 32 g + l
  u8 qs[128];     // as in q4_k
};
struct BlockQ6_K {
  enum { kElements = 256, kGroup = 16 };
  u8 ql[128];     // low 4 bits: nibble j / 2 of ql[64 h + 32 (j % 2) + l]: element 128 h + 32 j + l
  u8 qh[64];      // high 2 bits: qh[32 h + l] >> 2 j; minus 32
  i8 scales[16];  // in units of d
  u16 d;          // f16
};
struct BlockQ8_K {
  enum { kElements = 256, kGroup = 256 };
  float d;
  i8 qs[256];
  i16 bsums[16];  // sums of 16 consecutive qs, for dot products
};
struct BlockIQ4_NL {
  enum { kElements = 32, kGroup = 32 };
  u16 d;      // f16
  u8 qs[16];  // indices into the code book, nibbles as in q4_0
};
struct BlockIQ4_XS {
  enum { kElements = 256, kGroup = 32 };
  u16 d;           // f16
  u16 scales_h;    // high 2 bits of 8 scales
  u8 scales_l[4];  // low 4 bits; a scale is minus 32
  u8 qs[128];      // 8 groups of 16 bytes, nibbles as in q4_0
};
struct BlockMXFP4 {
  enum { kElements = 32, kGroup = 32 };
  u8 e;       // E8M0: power of two
  u8 qs[16];  // E2M1 codes, nibbles as in q4_0
};
struct BlockF8_G128 {
  enum { kElements = 128, kGroup = 128 };
  float d;     // NaN where a code of the checkpoint is
  u8 qs[128];  // e4m3 codes; NaN's, 0x7f and 0xff, only where d is NaN: read as it or as 480
};

static_assert(sizeof(BlockQ4_0) == 18, "q4_0 is a file format");
static_assert(sizeof(BlockQ4_1) == 20, "q4_1 is a file format");
static_assert(sizeof(BlockQ5_0) == 22, "q5_0 is a file format");
static_assert(sizeof(BlockQ5_1) == 24, "q5_1 is a file format");
static_assert(sizeof(BlockQ8_0) == 34, "q8_0 is a file format");
static_assert(sizeof(BlockQ2_K) == 84, "q2_k is a file format");
static_assert(sizeof(BlockQ3_K) == 110, "q3_k is a file format");
static_assert(sizeof(BlockQ4_K) == 144, "q4_k is a file format");
static_assert(sizeof(BlockQ5_K) == 176, "q5_k is a file format");
static_assert(sizeof(BlockQ6_K) == 210, "q6_k is a file format");
static_assert(sizeof(BlockQ8_K) == 292, "q8_k is a file format");
static_assert(sizeof(BlockIQ4_NL) == 18, "iq4_nl is a file format");
static_assert(sizeof(BlockIQ4_XS) == 136, "iq4_xs is a file format");
static_assert(sizeof(BlockMXFP4) == 17, "mxfp4 is a file format");
static_assert(sizeof(BlockF8_G128) == 132, "a scale and 128 codes");

// Value `index` (0 to 15) of the iq4 code book, ascending from -127 to 113. The sixteen bytes are
// in two constants, because tables need a different address space on each side.
RB_FN constexpr int iq4_value(int index) {
  const u64 low = 0xf6eaddcfbfad9881ull;   // -127 -104 -83 -65 -49 -35 -22 -10
  const u64 high = 0x7159453526190d01ull;  // 1 13 25 38 53 69 89 113
  return static_cast<i8>((index < 8 ? low : high) >> (8 * (index & 7)));
}

// Twice the E2M1 value with these 4 bits: 0 1 2 3 4 6 8 12 and their negatives.
RB_FN constexpr int e2m1_doubled(int code) {
  const int magnitude = static_cast<int>((0xc8643210u >> (4 * (code & 7))) & 15u);
  return (code & 8) != 0 ? -magnitude : magnitude;
}

// Half of the E8M0 value: 2^(e - 128); the two smallest are subnormal.
RB_FN float e8m0_halved(u8 e) {
  return float_of_bits(e < 2 ? 0x00200000u << e : static_cast<u32>(e - 1) << 23);
}

// An e4m3 code as the bits of a binary16 number, which is 2^-8 of its value: the exponents' biases
// are 7 and 15. Subnormal numbers are subnormal there too.
RB_FN constexpr u16 half_of_e4m3(u8 code) {
  return static_cast<u16>(((code & 0x80u) << 8) | ((code & 0x7fu) << 7));
}

// Scale (`min` false) or minimum number `group` of the 12 packed bytes of q4_k and q5_k, 0 to 63:
// the first four are the low 6 bits of bytes 0-3 (minima: 4-7), the last four have 4 bits in bytes
// 8-11 and their top 2 bits above those of the first.
RB_FN int scale_min_k4(const RB_GLOBAL u8* packed, int group, bool min) {
  const int top = min ? 4 : 0;
  if (group < 4) return packed[group + top] & 63;
  return ((packed[group + 4] >> top) & 15) | ((packed[group - 4 + top] >> 6) << 4);
}

RB_FN int nibble(const RB_GLOBAL u8* qs, int i) {
  return (qs[i & 15] >> ((i >> 4) << 2)) & 15;
}
// Element i of the 2-bit layout of q2_k, q3_k and (for the high bits) q6_k.
RB_FN int crumb(const RB_GLOBAL u8* qs, int i) {
  return (qs[((i >> 7) << 5) + (i & 31)] >> ((i >> 4) & 6)) & 3;
}
// Element i of the 4-bit layout of q4_k and q5_k.
RB_FN int nibble_k(const RB_GLOBAL u8* qs, int i) {
  return (qs[((i >> 6) << 5) + (i & 31)] >> ((i >> 3) & 4)) & 15;
}

RB_FN BlockScale no_offset(float d) {
  return BlockScale{d, -0.0f};
}

RB_FN BlockScale scale_of(const RB_GLOBAL BlockQ4_0& b, int) {
  return no_offset(float_of_half(b.d));
}
RB_FN int quant_of(const RB_GLOBAL BlockQ4_0& b, int i) {
  return nibble(b.qs, i) - 8;
}

RB_FN BlockScale scale_of(const RB_GLOBAL BlockQ4_1& b, int) {
  return BlockScale{float_of_half(b.d), float_of_half(b.m)};
}
RB_FN int quant_of(const RB_GLOBAL BlockQ4_1& b, int i) {
  return nibble(b.qs, i);
}

RB_FN BlockScale scale_of(const RB_GLOBAL BlockQ5_0& b, int) {
  return no_offset(float_of_half(b.d));
}
RB_FN int quant_of(const RB_GLOBAL BlockQ5_0& b, int i) {
  return (nibble(b.qs, i) | (((b.qh[i >> 3] >> (i & 7)) & 1) << 4)) - 16;
}

RB_FN BlockScale scale_of(const RB_GLOBAL BlockQ5_1& b, int) {
  return BlockScale{float_of_half(b.d), float_of_half(b.m)};
}
RB_FN int quant_of(const RB_GLOBAL BlockQ5_1& b, int i) {
  return nibble(b.qs, i) | (((b.qh[i >> 3] >> (i & 7)) & 1) << 4);
}

RB_FN BlockScale scale_of(const RB_GLOBAL BlockQ8_0& b, int) {
  return no_offset(float_of_half(b.d));
}
RB_FN int quant_of(const RB_GLOBAL BlockQ8_0& b, int i) {
  return b.qs[i];
}

RB_FN BlockScale scale_of(const RB_GLOBAL BlockQ2_K& b, int group) {
  const float d = float_of_half(b.d) * static_cast<float>(b.scales[group] & 15);
  const float m = float_of_half(b.dmin) * static_cast<float>(b.scales[group] >> 4);
  return BlockScale{d, -m};
}
RB_FN int quant_of(const RB_GLOBAL BlockQ2_K& b, int i) {
  return crumb(b.qs, i);
}

RB_FN BlockScale scale_of(const RB_GLOBAL BlockQ3_K& b, int group) {
  const int low = (b.scales[group & 7] >> ((group >> 3) << 2)) & 15;
  const int high = (b.scales[8 + (group & 3)] >> ((group >> 2) << 1)) & 3;
  return no_offset(float_of_half(b.d) * static_cast<float>((low | (high << 4)) - 32));
}
RB_FN int quant_of(const RB_GLOBAL BlockQ3_K& b, int i) {
  return crumb(b.qs, i) - (((b.hmask[i & 31] >> (i >> 5)) & 1) != 0 ? 0 : 4);
}

RB_FN BlockScale scale_of(const RB_GLOBAL BlockQ4_K& b, int group) {
  const float d = float_of_half(b.d) * static_cast<float>(scale_min_k4(b.scales, group, false));
  const float m = float_of_half(b.dmin) * static_cast<float>(scale_min_k4(b.scales, group, true));
  return BlockScale{d, -m};
}
RB_FN int quant_of(const RB_GLOBAL BlockQ4_K& b, int i) {
  return nibble_k(b.qs, i);
}

RB_FN BlockScale scale_of(const RB_GLOBAL BlockQ5_K& b, int group) {
  const float d = float_of_half(b.d) * static_cast<float>(scale_min_k4(b.scales, group, false));
  const float m = float_of_half(b.dmin) * static_cast<float>(scale_min_k4(b.scales, group, true));
  return BlockScale{d, -m};
}
RB_FN int quant_of(const RB_GLOBAL BlockQ5_K& b, int i) {
  return nibble_k(b.qs, i) | (((b.qh[i & 31] >> (i >> 5)) & 1) << 4);
}

RB_FN BlockScale scale_of(const RB_GLOBAL BlockQ6_K& b, int group) {
  return no_offset(float_of_half(b.d) * static_cast<float>(b.scales[group]));
}
RB_FN int quant_of(const RB_GLOBAL BlockQ6_K& b, int i) {
  const int low = (b.ql[((i >> 7) << 6) + (i & 63)] >> ((i >> 4) & 4)) & 15;
  return (low | (crumb(b.qh, i) << 4)) - 32;
}

RB_FN BlockScale scale_of(const RB_GLOBAL BlockQ8_K& b, int) {
  return no_offset(b.d);
}
RB_FN int quant_of(const RB_GLOBAL BlockQ8_K& b, int i) {
  return b.qs[i];
}

RB_FN BlockScale scale_of(const RB_GLOBAL BlockIQ4_NL& b, int) {
  return no_offset(float_of_half(b.d));
}
RB_FN int quant_of(const RB_GLOBAL BlockIQ4_NL& b, int i) {
  return iq4_value(nibble(b.qs, i));
}

RB_FN BlockScale scale_of(const RB_GLOBAL BlockIQ4_XS& b, int group) {
  const int low = (b.scales_l[group >> 1] >> ((group & 1) << 2)) & 15;
  const int high = (b.scales_h >> (2 * group)) & 3;
  return no_offset(float_of_half(b.d) * static_cast<float>((low | (high << 4)) - 32));
}
RB_FN int quant_of(const RB_GLOBAL BlockIQ4_XS& b, int i) {
  return iq4_value(nibble(b.qs + ((i >> 5) << 4), i & 31));
}

RB_FN BlockScale scale_of(const RB_GLOBAL BlockMXFP4& b, int) {
  return no_offset(e8m0_halved(b.e));
}
RB_FN int quant_of(const RB_GLOBAL BlockMXFP4& b, int i) {
  return e2m1_doubled(nibble(b.qs, i));
}

RB_FN BlockScale scale_of(const RB_GLOBAL BlockF8_G128& b, int) {
  return no_offset(b.d);
}
RB_FN float quant_of(const RB_GLOBAL BlockF8_G128& b, int i) {
  return float_of_half(half_of_e4m3(b.qs[i])) * 256.0f;
}

template <class Quant>
RB_FN float apply_scale(BlockScale scale, Quant q) {
  return scale.d * static_cast<float>(q) + scale.m;
}

// Element i of one block, 0 <= i < kElements.
template <class Block>
RB_FN float dequantize(const RB_GLOBAL Block& block, int i) {
  return apply_scale(scale_of(block, i / Block::kGroup), quant_of(block, i));
}

// All elements of one block, in order.
template <class Block>
RB_FN void dequantize_block(const RB_GLOBAL Block& block, RB_COPIED float* out) {
  for (int group = 0; group < Block::kElements / Block::kGroup; ++group) {
    const BlockScale scale = scale_of(block, group);
    const int first = group * Block::kGroup;
    for (int i = 0; i < Block::kGroup; ++i) {
      out[first + i] = apply_scale(scale, quant_of(block, first + i));
    }
  }
}

}  // namespace shared
}  // namespace rbee
