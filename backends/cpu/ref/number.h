#pragma once
// The arithmetic of the reference kernels for each element type: f16, bf16, f8e4m3 and f32 in
// float, f64 in double, integers in their own type.

#include <cmath>
#include <limits>
#include <type_traits>

#include "backends/api/dispatch.h"

namespace rbee::cpu {

template <typename T>
inline constexpr bool kIsSmallFloat =
    std::is_same_v<T, f16> || std::is_same_v<T, bf16> || std::is_same_v<T, f8e4m3>;

// The type that arithmetic on T runs in.
template <typename T>
using Compute = std::conditional_t<kIsSmallFloat<T>, float, T>;

// The type that long sums run in: exact for integers up to 64 bits, modulo 2^64 beyond.
template <typename T>
using Sum = std::conditional_t<std::is_floating_point_v<Compute<T>>, double, int64_t>;

template <typename T>
Compute<T> load(T x) {
  if constexpr (kIsSmallFloat<T>) {
    return to_float(x);
  } else {
    return x;
  }
}

// float or double to an integer type: truncates, saturates, NaN gives 0.
template <typename Int, typename Float>
Int saturate(Float x) {
  // 2^digits is the first value above the range and is exact in Float; the lowest value is too.
  constexpr Float kEnd =
      static_cast<Float>(uint64_t{1} << (std::numeric_limits<Int>::digits - 1)) * 2;
  if (std::isnan(x)) return 0;
  if (x >= kEnd) return std::numeric_limits<Int>::max();
  if (x < static_cast<Float>(std::numeric_limits<Int>::min())) {
    return std::numeric_limits<Int>::min();
  }
  return static_cast<Int>(x);
}

// Converts any number to a storage type, as the cast operation defines it: integers to integers
// keep the low bits, and small floats are converted through float.
template <typename T, typename From>
T store(From x) {
  if constexpr (std::is_same_v<T, f16>) {
    return to_f16(static_cast<float>(x));
  } else if constexpr (std::is_same_v<T, bf16>) {
    return to_bf16(static_cast<float>(x));
  } else if constexpr (std::is_same_v<T, f8e4m3>) {
    return to_f8e4m3(static_cast<float>(x));
  } else if constexpr (std::is_integral_v<T> && std::is_floating_point_v<From>) {
    return saturate<T>(x);
  } else {
    return static_cast<T>(x);
  }
}

template <typename Body>
void dispatch_floats(const char* op, DType dtype, Body&& body) {
  dispatch<f16, bf16, float, double, f8e4m3>(op, dtype, body);
}

template <typename Body>
void dispatch_numbers(const char* op, DType dtype, Body&& body) {
  dispatch<uint8_t, uint32_t, int16_t, int32_t, int64_t, f16, bf16, float, double, f8e4m3>(
      op, dtype, body);
}

// For operations that only move elements: one body per element size.
template <typename Body>
void dispatch_sizes(const char* op, DType dtype, Body&& body) {
  switch (info(dtype).block_bytes) {
    case 1:
      return body.template operator()<uint8_t>();
    case 2:
      return body.template operator()<uint16_t>();
    case 4:
      return body.template operator()<uint32_t>();
    case 8:
      return body.template operator()<uint64_t>();
    default:
      fail(Code::unsupported, op, "dtype ", dtype, " has no kernel");
  }
}

}  // namespace rbee::cpu
