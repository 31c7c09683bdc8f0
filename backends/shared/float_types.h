#pragma once
// 16- and 8-bit floats as kernels hold them, and their conversions. Same layouts and results as
// rbee/core/half.h: f16 is IEEE binary16, bf16 the upper half of binary32, f8e4m3 the OCP FP8
// E4M3FN (saturating); all round to nearest even.

#include "backends/shared/rb_fn.h"

namespace rbee {
namespace shared {

struct f16 {
  u16 bits;
};
struct bf16 {
  u16 bits;
};
struct f8e4m3 {
  u8 bits;
};

RB_FN u16 half_of_float(float x) {
#if defined(__METAL_VERSION__)
  return as_type<ushort>(static_cast<half>(x));
#elif defined(__CUDA_ARCH__)
  u16 out;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out) : "f"(x));
  return out;
#elif defined(__AMDGCN__)
  return __builtin_bit_cast(u16, static_cast<_Float16>(x));
#else
  const u32 bits = bits_of_float(x);
  const u32 sign = (bits >> 16) & 0x8000u;
  const u32 size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return static_cast<u16>(sign | 0x7e00u | ((size >> 13) & 0x3ffu));
  if (size >= 0x477ff000u) return static_cast<u16>(sign | 0x7c00u);
  if (size < 0x38800000u) {
    return static_cast<u16>(sign | (bits_of_float(float_of_bits(size) + 0.5f) - 0x3f000000u));
  }
  return static_cast<u16>(sign | ((size - 0x38000000u + 0xfffu + ((size >> 13) & 1u)) >> 13));
#endif
}

RB_FN float float_of_bf16(u16 bits) {
  return float_of_bits(static_cast<u32>(bits) << 16);
}

RB_FN u16 bf16_of_float(float x) {
#if defined(__CUDA_ARCH__)
  u16 out;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(out) : "f"(x));
  return out;
#else
  const u32 bits = bits_of_float(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<u16>((bits >> 16) | 0x40u);
  return static_cast<u16>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
#endif
}

RB_FN float float_of_f8(u8 bits) {
#if defined(__CUDA_ARCH__) || defined(__AMDGCN__)
  // As the bits of a binary16, whose exponent has the bias 15, it is 2^-8 of the value; subnormals
  // too. No branches.
  const u32 half = (bits & 0x80u) << 8 | (bits & 0x7fu) << 7;
  const float value = float_of_half(static_cast<u16>(half)) * 256.0f;
  return (bits & 0x7fu) == 0x7fu ? float_of_bits(half << 16 | 0x7fc00000u) : value;
#else
  const u32 sign = static_cast<u32>(bits & 0x80u) << 24;
  const u32 size = bits & 0x7fu;
  if (size == 0x7fu) return float_of_bits(sign | 0x7fc00000u);
  // 2^120 moves the exponent's bias from 7 to 127; the mantissa of a subnormal counts units of
  // 2^-9.
  if (size < 8) {
    const float units = static_cast<float>(size) * 0.001953125f;
    return float_of_bits(bits_of_float(units) | sign);
  }
  return float_of_bits((size << 20) + 0x3c000000u) * (sign != 0 ? -1.0f : 1.0f);
#endif
}

RB_FN u8 f8_of_float(float x) {
  const u32 bits = bits_of_float(x);
  const u32 sign = (bits >> 24) & 0x80u;
  const u32 size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return static_cast<u8>(sign | 0x7fu);
  if (size >= 0x43e80000u) return static_cast<u8>(sign | 0x7eu);  // 464 and above
  if (size < 0x3c800000u) {
    return static_cast<u8>(sign | (bits_of_float(float_of_bits(size) + 16384.0f) - 0x46800000u));
  }
  return static_cast<u8>(sign | ((size - 0x3c000000u + 0x7ffffu + ((size >> 20) & 1u)) >> 20));
}

RB_FN float to_float(f16 x) {
  return float_of_half(x.bits);
}
RB_FN float to_float(bf16 x) {
  return float_of_bf16(x.bits);
}
RB_FN float to_float(f8e4m3 x) {
  return float_of_f8(x.bits);
}
RB_FN float to_float(float x) {
  return x;
}

// from_float<T>(x): x rounded to T.
template <class T>
RB_FN T from_float(float x);
template <>
RB_FN float from_float<float>(float x) {
  return x;
}
template <>
RB_FN f16 from_float<f16>(float x) {
  return f16{half_of_float(x)};
}
template <>
RB_FN bf16 from_float<bf16>(float x) {
  return bf16{bf16_of_float(x)};
}
template <>
RB_FN f8e4m3 from_float<f8e4m3>(float x) {
  return f8e4m3{f8_of_float(x)};
}

}  // namespace shared
}  // namespace rbee
