#pragma once
// Key/value caches in q8_0. A page holds one block of positions for one head: `rows` positions of
// `dim` elements, dim a multiple of 32. It has the same numbers and as many bytes as ggml's q8_0,
// but codes and scales are apart, so that a row of codes can be read 8 or 16 bytes at a time:
//
//   codes   i8 (rows, dim)
//   scales  f16 (rows, dim / 32), each of 32 neighbouring elements; an element is code * scale
//
// Pages follow each other: (blocks, kv_heads). Offsets are in bytes.

#include "backends/shared/float_types.h"

namespace rbee {
namespace shared {

// View::packing of such a cache, so that no other operation mistakes it for rows of blocks.
constexpr u8 kPagePacking = 255;
constexpr int kPageGroup = 32;  // elements that share a scale

// Offset of the page whose first element is `element` of the cache.
RB_FN i64 page_start(i64 element) {
  return element / kPageGroup * (kPageGroup + 2);
}
// Offset of a row's scales in its page; its codes begin at row * dim.
RB_FN i64 page_scales(i64 rows, i64 dim, i64 row) {
  return rows * dim + row * (dim / kPageGroup) * 2;
}

// Rounds a group as ggml does: the largest magnitude is 127 steps. If a finite number is too large
// for an f16 scale, it counts as the largest that fits. NaN or an infinity makes the scale NaN, and
// so the whole group when it is read: a model's failure must show.
struct PageScale {
  u16 bits;       // f16
  float inverse;  // codes in a unit; 0 if the scale is 0 or NaN

  RB_FN u8 code(float x) const {
    const float steps = x * inverse;
    float within = steps > 127.0f ? 127.0f : steps;
    if (!(within >= -127.0f)) within = within < 0.0f ? -127.0f : 0.0f;
    // The last bits of a float of this size are units, rounded to nearest even.
    return static_cast<u8>(bits_of_float(within + 12582912.0f));
  }
};
// |x| as bits: their order is that of magnitudes, with NaN above infinity.
RB_FN u32 magnitude_bits(float x) {
  return bits_of_float(x) & 0x7fffffffu;
}
// largest: magnitude_bits() of an element of the group.
RB_FN PageScale page_scale(u32 largest) {
  constexpr u32 kInfinity = 0x7f800000u, kNaN = 0x7e00u;
  constexpr float kMost = 65504.0f;
  if (largest >= kInfinity) return PageScale{static_cast<u16>(kNaN), 0.0f};
  const float step = float_of_bits(largest) / 127.0f;
  const float scale = step < kMost ? step : kMost;
  const u16 bits = half_of_float(scale);
  return PageScale{bits, bits == 0 ? 0.0f : 1.0f / scale};
}

struct PageCode {
  u8 bits;  // i8
};
RB_FN float to_float(PageCode x) {
  return static_cast<float>(static_cast<i8>(x.bits));
}

}  // namespace shared
}  // namespace rbee
