#pragma once
// Products of e4m3 codes (OCP FP8) with signed bytes, by instructions on pairs of f16 that vendors
// have under other names, as in instructions.h.

#include "backends/gpu/portable.h"

namespace rbee {
namespace gpu {

#if !defined(__CUDACC__)
typedef _Float16 HalfPair __attribute__((ext_vector_type(2)));
#endif

// Bytes 0 and 2, signed, as two f16.
RB_DEVICE u32 even_bytes_as_halves(u32 bytes) {
  // In an f16 number from 1024 on the last place counts 1; 128 makes bytes positive.
  const u32 positive = ((bytes ^ 0x80808080u) & 0x00ff00ffu) | 0x64006400u;
  constexpr u32 kMinus1152 = 0xe480e480u;
#if defined(__CUDACC__)
  u32 sum;
  asm("add.rn.f16x2 %0, %1, %2;" : "=r"(sum) : "r"(positive), "r"(kMinus1152));
  return sum;
#else
  return __builtin_bit_cast(
      u32, __builtin_bit_cast(HalfPair, positive) + __builtin_bit_cast(HalfPair, kMinus1152));
#endif
}

// The dot product of words of four codes with bytes that even_bytes_as_halves() has made f16. Each
// product is exact (4 bits by 7). NVIDIA adds them in f16: for the few words of a piece, whose x
// was rounded more.
class E4m3Dot {
 public:
  // even: elements 0 and 2 of the word, odd: 1 and 3.
  RB_DEVICE void add(u32 codes, u32 even, u32 odd) {
    add_pair(halves_of(codes << 8), even, even_);
    add_pair(halves_of(codes), odd, odd_);
  }
#if defined(__CUDACC__)
  RB_DEVICE float sum() const {
    const float even = low_half(even_) + low_half(even_ >> 16);
    return (even + low_half(odd_) + low_half(odd_ >> 16)) * 256.0f;
  }
#else
  RB_DEVICE float sum() const { return even_ + odd_; }
#endif

 private:
  // Of the codes in bytes 1 and 3, 2^-8 of their values: half_of_e4m3().
  RB_DEVICE static u32 halves_of(u32 codes) {
    return (codes & 0x80008000u) | ((codes >> 1) & 0x3f803f80u);
  }
#if defined(__CUDACC__)
  RB_DEVICE static float low_half(u32 pair) { return float_of_half(static_cast<u16>(pair)); }
  RB_DEVICE static void add_pair(u32 weights, u32 x, u32& sum) {
    asm("fma.rn.f16x2 %0, %1, %2, %0;" : "+r"(sum) : "r"(weights), "r"(x));
  }
  u32 even_ = 0, odd_ = 0;
#else
  // v_dot2_f32_f16 takes subnormal numbers as 0; the codes' own values have none.
  RB_DEVICE static void add_pair(u32 weights, u32 x, float& sum) {
    const HalfPair values = __builtin_bit_cast(HalfPair, weights) * static_cast<_Float16>(256);
    sum = __builtin_amdgcn_fdot2(values, __builtin_bit_cast(HalfPair, x), sum, false);
  }
  float even_ = 0, odd_ = 0;
#endif
};

}  // namespace gpu
}  // namespace rbee
