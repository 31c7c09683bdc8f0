#pragma once
// Products of e4m3 codes (OCP FP8) with signed bytes, by instructions on pairs of f16 that vendors
// have under other names, as in instructions.h.

#include "backends/gpu/portable.h"

namespace rbee {
namespace gpu {

#if !defined(__CUDACC__)
typedef _Float16 HalfPair __attribute__((ext_vector_type(2)));
#elif __CUDA_ARCH__ >= 890
#define RB_CONVERTS_E4M3 1
#endif

// The dot product of words of four codes with signed bytes, which pairs_of_bytes() has made f16.
// Each product is exact (4 bits by 7). NVIDIA adds them in f16, 2^-8 of them so that they stay in
// its range: for the few words of a piece, whose x was rounded more.
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
  // v_dot2_f32_f16 takes subnormal numbers as 0; the codes' own values have none.
  RB_DEVICE static void add_pair(u32 weights, u32 x, float& sum) {
    const HalfPair values = __builtin_bit_cast(HalfPair, weights) * static_cast<_Float16>(256);
    sum = __builtin_amdgcn_fdot2(values, __builtin_bit_cast(HalfPair, x), sum, false);
  }
  float first_ = 0, second_ = 0;
#endif
#if defined(RB_CONVERTS_E4M3)
  RB_DEVICE static u32 values_of(u16 codes) {
    u32 pair;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(codes));
    return pair;
  }
#else
  // Of the codes in bytes 1 and 3, 2^-8 of their values: half_of_e4m3().
  RB_DEVICE static u32 halves_of(u32 codes) {
    return (codes & 0x80008000u) | ((codes >> 1) & 0x3f803f80u);
  }
  // Bytes 0 and 2.
  RB_DEVICE static u32 even_bytes(u32 bytes) {
    // In an f16 number from 1024 on the last place counts 1; 128 makes bytes positive.
    return add_halves(((bytes ^ 0x80808080u) & 0x00ff00ffu) | 0x64006400u, 0xe480e480u);
  }
#endif
};

#if defined(RB_CONVERTS_E4M3)
RB_DEVICE void E4m3Dot::pairs_of_bytes(u32 bytes, u32& first, u32& second) {
  // In an f16 number from 4 on the last place counts 2^-8; 128 makes bytes positive.
  const u32 positive = bytes ^ 0x80808080u;
  constexpr u32 kMinusHalves = 0xc480c480u;  // -4.5
  first = add_halves(__byte_perm(positive, 0x44444444u, 0x4140), kMinusHalves);
  second = add_halves(__byte_perm(positive, 0x44444444u, 0x4342), kMinusHalves);
}
RB_DEVICE void E4m3Dot::add(u32 codes, u32 first, u32 second) {
  add_pair(values_of(static_cast<u16>(codes)), first, first_);
  add_pair(values_of(static_cast<u16>(codes >> 16)), second, second_);
}
#else
RB_DEVICE void E4m3Dot::pairs_of_bytes(u32 bytes, u32& first, u32& second) {
  first = even_bytes(bytes);
  second = even_bytes(bytes >> 8);
}
RB_DEVICE void E4m3Dot::add(u32 codes, u32 first, u32 second) {
  add_pair(halves_of(codes << 8), first, first_);
  add_pair(halves_of(codes), second, second_);
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
