#pragma once
// Arithmetic on pairs of f16, and with it products of e4m3 codes (OCP FP8) and signed bytes. Like
// instructions.h, it wraps instructions that have another name for each vendor.

#include "backends/gpu/instructions.h"

namespace rbee {
namespace gpu {

#if !defined(__CUDACC__)
typedef _Float16 HalfPair __attribute__((ext_vector_type(2)));
#endif

// a * b + c of two neighbours in a word, rounded once.
template <class T>
RB_DEVICE u32 fma_pair(u32 a, u32 b, u32 c);
template <>
RB_DEVICE u32 fma_pair<f16>(u32 a, u32 b, u32 c) {
#if defined(__CUDACC__)
  u32 out;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(c));
  return out;
#else
  return __builtin_bit_cast(u32, __builtin_elementwise_fma(__builtin_bit_cast(HalfPair, a),
                                                           __builtin_bit_cast(HalfPair, b),
                                                           __builtin_bit_cast(HalfPair, c)));
#endif
}

// For targets with an instruction that converts e4m3 codes to f16. gfx942's instructions take
// another e4m3, with bias 8 and NaN for minus zero (AMD CDNA3 ISA).
#if defined(__gfx950__) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890)
#define RB_E4M3_HALVES 1

// The values of a word's four codes, in their order.
RB_DEVICE void e4m3_halves(u32 codes, u32 (&pairs)[2]) {
#if defined(__CUDACC__)
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pairs[0]) : "h"(static_cast<u16>(codes)));
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pairs[1]) : "h"(static_cast<u16>(codes >> 16)));
#else
  pairs[0] = __builtin_bit_cast(u32, __builtin_amdgcn_cvt_scalef32_pk_f16_fp8(codes, 1.0f, false));
  pairs[1] = __builtin_bit_cast(u32, __builtin_amdgcn_cvt_scalef32_pk_f16_fp8(codes, 1.0f, true));
#endif
}
#endif

// The dot product of words of four codes with signed bytes, which pairs_of_bytes() has made f16.
// Each product is exact (4 bits by 7). NVIDIA adds them in f16, scaled by 2^-8 to stay in range.
// That is good enough for the few words of a piece, because rounding x loses more.
class E4m3Dot {
 public:
  // A word's four signed bytes as pairs of f16 in the order in which add() takes codes.
  RB_DEVICE static void pairs_of_bytes(u32 bytes, u32& first, u32& second);
  // first, second: pairs_of_bytes().
  RB_DEVICE void add(u32 codes, u32 first, u32 second);
  RB_DEVICE float sum() const;

 private:
#if defined(__CUDACC__)
  RB_DEVICE static u32 add_halves(u32 a, u32 b) {
    u32 sum;
    asm("add.rn.f16x2 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
    return sum;
  }
  RB_DEVICE static void add_pair(u32 weights, u32 x, u32& sum) {
    asm("fma.rn.f16x2 %0, %1, %2, %0;" : "+r"(sum) : "r"(weights), "r"(x));
  }
  RB_DEVICE static float low_half(u32 pair) { return float_of_half(static_cast<u16>(pair)); }
  u32 first_ = 0, second_ = 0;
#else
  RB_DEVICE static u32 add_halves(u32 a, u32 b) {
    return __builtin_bit_cast(u32,
                              __builtin_bit_cast(HalfPair, a) + __builtin_bit_cast(HalfPair, b));
  }
  RB_DEVICE static void add_pair(u32 weights, u32 x, float& sum) {
    sum = __builtin_amdgcn_fdot2(__builtin_bit_cast(HalfPair, weights),
                                 __builtin_bit_cast(HalfPair, x), sum, false);
  }
  float first_ = 0, second_ = 0;
#endif
#if !defined(RB_E4M3_HALVES)
  // Of the codes in bytes 1 and 3, as add_pair() takes them: on NVIDIA 2^-8 of their values
  // (half_of_e4m3()); v_dot2_f32_f16 takes subnormal numbers as 0, and the codes' own values have
  // none.
  RB_DEVICE static u32 values_of(u32 codes) {
    const u32 halves = (codes & 0x80008000u) | ((codes >> 1) & 0x3f803f80u);
#if defined(__CUDACC__)
    return halves;
#else
    return __builtin_bit_cast(u32,
                              __builtin_bit_cast(HalfPair, halves) * static_cast<_Float16>(256));
#endif
  }
  // Bytes 0 and 2.
  RB_DEVICE static u32 even_bytes(u32 bytes) {
    // In an f16 number from 1024 on the last place counts 1; 128 makes bytes positive.
    return add_halves(((bytes ^ 0x80808080u) & 0x00ff00ffu) | 0x64006400u, 0xe480e480u);
  }
#endif
};

#if defined(RB_E4M3_HALVES)
RB_DEVICE void E4m3Dot::pairs_of_bytes(u32 bytes, u32& first, u32& second) {
  const u32 positive = bytes ^ 0x80808080u;  // + 128
#if defined(__CUDACC__)
  // In an f16 number from 4 on the last place counts 2^-8.
  constexpr u32 kPlace = 0x44444444u, kLess = 0xc480c480u;  // -4.5
#else
  // In an f16 number from 1024 on the last place counts 1.
  constexpr u32 kPlace = 0x64646464u, kLess = 0xe480e480u;  // -1152
#endif
  first = add_halves(pick_bytes<0x4140>(positive, kPlace), kLess);
  second = add_halves(pick_bytes<0x4342>(positive, kPlace), kLess);
}
RB_DEVICE void E4m3Dot::add(u32 codes, u32 first, u32 second) {
  u32 pairs[2];
  e4m3_halves(codes, pairs);
  add_pair(pairs[0], first, first_);
  add_pair(pairs[1], second, second_);
}
#else
RB_DEVICE void E4m3Dot::pairs_of_bytes(u32 bytes, u32& first, u32& second) {
  first = even_bytes(bytes);
  second = even_bytes(bytes >> 8);
}
RB_DEVICE void E4m3Dot::add(u32 codes, u32 first, u32 second) {
  add_pair(values_of(codes << 8), first, first_);
  add_pair(values_of(codes), second, second_);
}
#endif

#if defined(__CUDACC__)
RB_DEVICE float E4m3Dot::sum() const {
  const float first = low_half(first_) + low_half(first_ >> 16);
  return (first + low_half(second_) + low_half(second_ >> 16)) * 256.0f;
}
#else
RB_DEVICE float E4m3Dot::sum() const {
  return first_ + second_;
}
#endif

}  // namespace gpu
}  // namespace rbee
