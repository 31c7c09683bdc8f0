#pragma once
// The base of all headers in backends/shared. CPU, CUDA, HIP and Metal compilers read them as
// C++14, and they include no standard header.
//   RB_FN      qualifiers of a function callable on every side
//   RB_GLOBAL  address space of data in device memory (Metal names it, the others do not)
//   RB_COPIED  address space of a function's own variables and results
//   RB_TABLE   constants in memory from a multiple of 16 bytes on, for a header's arrays

#if defined(__METAL_VERSION__)
#define RB_FN inline
#define RB_GLOBAL device
#define RB_COPIED thread
#define RB_TABLE alignas(16) constant constexpr
#elif defined(__CUDACC__) || defined(__HIP__)
#define RB_FN __attribute__((host)) __attribute__((device)) inline
#define RB_GLOBAL
#define RB_COPIED
#define RB_TABLE alignas(16) static __attribute__((device)) const
#else
#define RB_FN inline
#define RB_GLOBAL
#define RB_COPIED
#define RB_TABLE alignas(16) static constexpr
#endif

namespace rbee {
namespace shared {

using u8 = __UINT8_TYPE__;
using u16 = __UINT16_TYPE__;
using u32 = __UINT32_TYPE__;
using u64 = __UINT64_TYPE__;
using i8 = __INT8_TYPE__;
using i16 = __INT16_TYPE__;
using i32 = __INT32_TYPE__;
using i64 = __INT64_TYPE__;

RB_FN float float_of_bits(u32 bits) {
#if defined(__METAL_VERSION__)
  return as_type<float>(bits);
#else
  return __builtin_bit_cast(float, bits);
#endif
}

RB_FN u32 bits_of_float(float x) {
#if defined(__METAL_VERSION__)
  return as_type<uint>(x);
#else
  return __builtin_bit_cast(u32, x);
#endif
}

// The value of an IEEE 754 binary16 with these bits. GPUs may flush binary32 subnormals, so they
// convert by an instruction; the arithmetic of the last branch needs subnormals kept.
RB_FN float float_of_half(u16 bits) {
#if defined(__METAL_VERSION__)
  return static_cast<float>(as_type<half>(bits));
#elif defined(__CUDA_ARCH__)
  float out;
  asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"(bits));
  return out;
#elif defined(__AMDGCN__)
  return static_cast<float>(__builtin_bit_cast(_Float16, bits));
#else
  const u32 sign = static_cast<u32>(bits & 0x8000u) << 16;
  const u32 magnitude = static_cast<u32>(bits & 0x7fffu) << 13;
  // 2^112 moves the exponent's bias from 15 to 127 and normalises subnormals on the way.
  const u32 scaled = bits_of_float(float_of_bits(magnitude) * float_of_bits(0x77800000u));
  const u32 special = (bits & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0u;
  return float_of_bits(scaled | special | sign);
#endif
}

}  // namespace shared
}  // namespace rbee
