#pragma once
// Packed weights: layouts. A panel holds 16 rows of a weight (out, in), interleaved so that one
// broadcast of four neighbouring inputs meets four inputs of all 16 rows in one 64-byte vector (or
// two of 32 bytes). A packed weight is ceil(out / 16) panels one after the other; rows that do not
// exist are zero. Sizes equal the plain formats', up to 4 % more where 6-bit scales become bytes.
//
// Read by simd files: plain structs and constants only.

#include <cstdint>

namespace rbee::cpu {

inline constexpr int kPanelRows = 16;
inline constexpr int kGroup = 32;  // inputs in one group of planes
inline constexpr int kSteps = 8;   // a step: four inputs of the 16 rows, 64 bytes once unpacked
inline constexpr int kStepBytes = 64;
// View::packing of all packed weights; the dtype tells which of the layouts below it is.
inline constexpr uint8_t kPanelPacking = 1;

// Planes hold bits of the quants of one group. Byte 4 r + i of a step is row r, input 4 step + i.
struct NibblePlane {
  uint8_t bytes[4][kStepBytes];  // low nibbles of bytes[c]: step 2 c, high nibbles: step 2 c + 1
};
struct CrumbPlane {
  uint8_t bytes[2][kStepBytes];  // bits 2 j of bytes[c]: step 4 c + j
};
struct BitPlane {
  uint8_t bytes[kStepBytes];  // bit s: step s
};
struct BytePlane {
  int8_t bytes[kSteps][kStepBytes];
};

using HalfRow = uint16_t[kPanelRows];  // one f16 for each row

struct PanelQ4_0 {
  HalfRow d;
  NibblePlane low;  // plus 8
};
struct PanelQ4_1 {
  HalfRow d, m;
  NibblePlane low;
};
struct PanelQ5_0 {
  HalfRow d;
  NibblePlane low;
  BitPlane high;  // plus 16
};
struct PanelQ5_1 {
  HalfRow d, m;
  NibblePlane low;
  BitPlane high;
};
struct PanelQ8_0 {
  HalfRow d;
  BytePlane bytes;
};
struct PanelIQ4_NL {
  HalfRow d;
  NibblePlane low;  // indices into the code book
};
struct PanelMXFP4 {
  uint8_t e[kPanelRows];
  NibblePlane low;  // E2M1 codes
};
// Super-blocks: eight groups under one scale (and minimum) of each row.
struct PanelQ2_K {
  HalfRow d, dmin;
  struct Group {
    uint8_t scale_min[2][kPanelRows];  // of 16 inputs each; low nibble: scale, high: minimum
    CrumbPlane low;
  } groups[8];
};
struct PanelQ3_K {
  HalfRow d;
  struct Group {
    int8_t scale[2][kPanelRows];
    CrumbPlane low;
    BitPlane high;  // plus 4
  } groups[8];
};
struct PanelQ4_K {
  HalfRow d, dmin;
  struct Group {
    uint8_t scale[kPanelRows], min[kPanelRows];
    NibblePlane low;
  } groups[8];
};
struct PanelQ5_K {
  HalfRow d, dmin;
  struct Group {
    uint8_t scale[kPanelRows], min[kPanelRows];
    NibblePlane low;
    BitPlane high;
  } groups[8];
};
struct PanelQ6_K {
  HalfRow d;
  struct Group {
    int8_t scale[2][kPanelRows];
    NibblePlane low;
    CrumbPlane high;  // plus 32
  } groups[8];
};
struct PanelQ8_K {
  float d[kPanelRows];
  struct Group {
    BytePlane bytes;
  } groups[8];
};
struct PanelIQ4_XS {
  HalfRow d;
  struct Group {
    int8_t scale[kPanelRows];
    NibblePlane low;
  } groups[8];
};
// Codes of four inputs k to k + 3 of the 16 rows. A vector's even bytes, widened, are two
// neighbouring inputs, and its odd bytes the next two: byte 32 (i % 2) + 2 row + i / 2 is input k +
// i.
struct PanelF8_G128 {
  float d[kPanelRows];
  uint8_t steps[32][kStepBytes];
};

// Formats of few bits. A word holds one row's bytes of a group, in the file's order.
using WordRow = uint32_t[kPanelRows];

struct PanelIQ1_S {
  HalfRow d;
  struct Group {
    WordRow points;  // low 8 bits of four
    uint16_t high[kPanelRows];
  } groups[8];
};
struct PanelIQ1_M {
  HalfRow d;
  struct Group {
    WordRow points;
    uint16_t high[kPanelRows];
    uint8_t scale[kPanelRows];  // of 16 inputs each; low nibble, high nibble
  } groups[8];
};
struct PanelIQ2_XXS {
  HalfRow d;
  struct Group {
    WordRow points, signs;
  } groups[8];
};
struct PanelIQ2_XS {
  HalfRow d;
  struct Group {
    WordRow codes[2];  // of inputs 0 and 16, 8 and 24
    uint8_t scale[kPanelRows];
  } groups[8];
};
struct PanelIQ2_S {
  HalfRow d;
  struct Group {
    WordRow points, signs;
    uint8_t high[kPanelRows], scale[kPanelRows];
  } groups[8];
};
struct PanelIQ3_XXS {
  HalfRow d;
  struct Group {
    WordRow points[2], signs;
  } groups[8];
};
struct PanelIQ3_S {
  HalfRow d;
  uint8_t scale[4][kPanelRows];  // of two groups
  struct Group {
    WordRow points[2], signs;
    uint8_t high[kPanelRows];
  } groups[8];
};
struct PanelTQ1_0 {
  HalfRow d;
  WordRow words[13];  // step s of the super-block: digits s % 5 of word s / 5
};
struct PanelTQ2_0 {
  HalfRow d;
  struct Group {
    CrumbPlane low;  // plus 1
  } groups[8];
};
struct PanelNVFP4 {
  struct Group {
    uint8_t scale[2][kPanelRows];  // of 16 inputs each: E4M3, not negative, no NaN
    NibblePlane low;
  } groups[2];
};

// Float weights. f32 and f16: [in][16]. bf16: [in / 2][16][2], in pairs for the dot-product
// instruction; an odd `in` is padded with zeros.

}  // namespace rbee::cpu
