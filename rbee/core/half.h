#pragma once
// Storage types for 16-bit and 8-bit floats and their conversions to and from float.
//   f16     IEEE 754 binary16, round to nearest even, subnormals kept
//   bf16    upper half of binary32, round to nearest even, NaN kept quiet
//   f8e4m3  OCP FP8 E4M3FN: bias 7, no infinity, S.1111.111 is NaN, largest value 448 (saturating)

#include <bit>
#include <cstdint>

namespace rbee {

struct f16 {
  uint16_t bits;
};
struct bf16 {
  uint16_t bits;
};
struct f8e4m3 {
  uint8_t bits;
};

inline float to_float(bf16 x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16);
}

inline float to_float(f16 x) {
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000u) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(x.bits & 0x7fffu) << 13;
  // Scaling by 2^112 moves the exponent bias from 15 to 127 and normalises subnormals on the way.
  const float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
  const uint32_t special = (x.bits & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0u;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(scaled) | special | sign);
}

inline f16 to_f16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {  // NaN: quiet, payload's top bits kept
    return {static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu))};
  }
  if (magnitude >= 0x477ff000u) {  // rounds to at least 2^16
    return {static_cast<uint16_t>(sign | 0x7c00u)};
  }
  if (magnitude < 0x38800000u) {  // below the smallest normal: add 0.5 to align the mantissa
    const float aligned = std::bit_cast<float>(magnitude) + 0.5f;
    return {static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(aligned) - 0x3f000000u))};
  }
  const uint32_t odd = (magnitude >> 13) & 1u;
  return {static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13))};
}

inline bf16 to_bf16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return {static_cast<uint16_t>((bits >> 16) | 0x40u)};
  }
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

inline float to_float(f8e4m3 x) {
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x80u) << 24;
  const uint32_t magnitude = x.bits & 0x7fu;
  if (magnitude == 0x7fu) return std::bit_cast<float>(sign | 0x7fc00000u);
  const float scaled = std::bit_cast<float>(magnitude << 20) * 0x1p120f;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(scaled) | sign);
}

inline f8e4m3 to_f8e4m3(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t sign = (bits >> 24) & 0x80u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {static_cast<uint8_t>(sign | 0x7fu)};
  if (magnitude >= 0x43e80000u) return {static_cast<uint8_t>(sign | 0x7eu)};  // 464 and above
  if (magnitude < 0x3c800000u) {  // below 2^-6: the mantissa counts units of 2^-9
    const float aligned = std::bit_cast<float>(magnitude) + 0x1p14f;
    return {static_cast<uint8_t>(sign | (std::bit_cast<uint32_t>(aligned) - 0x46800000u))};
  }
  const uint32_t odd = (magnitude >> 20) & 1u;
  return {static_cast<uint8_t>(sign | ((magnitude - 0x3c000000u + 0x7ffffu + odd) >> 20))};
}

}  // namespace rbee
