#include <type_traits>

#include "backends/cpu/linear/kernels.h"
#include "rbee/core/half.h"

namespace rbee::cpu {
namespace {

template <typename T>
float widened(T x) {
  if constexpr (std::is_same_v<T, float>) {
    return x;
  } else {
    return to_float(x);
  }
}

template <typename T>
T narrowed(float x) {
  if constexpr (std::is_same_v<T, f16>) {
    return to_f16(x);
  } else if constexpr (std::is_same_v<T, bf16>) {
    return to_bf16(x);
  } else {
    return x;
  }
}

template <typename Body>
void with_floats(DType dtype, const Body& body) {
  if (dtype == DType::f16) return body.template operator()<f16>();
  if (dtype == DType::bf16) return body.template operator()<bf16>();
  body.template operator()<float>();
}

void widen(DType dtype, const void* from, int64_t count, float* to) {
  with_floats(dtype, [&]<typename T>() {
    for (int64_t i = 0; i < count; ++i) to[i] = widened(static_cast<const T*>(from)[i]);
  });
}

void add(DType dtype, const void* from, int64_t count, float* sums) {
  with_floats(dtype, [&]<typename T>() {
    for (int64_t i = 0; i < count; ++i) sums[i] += widened(static_cast<const T*>(from)[i]);
  });
}

void narrow(DType dtype, const float* from, int64_t count, void* to) {
  with_floats(dtype, [&]<typename T>() {
    for (int64_t i = 0; i < count; ++i) static_cast<T*>(to)[i] = narrowed<T>(from[i]);
  });
}

}  // namespace

constinit const FloatRows float_rows_portable{.widen = &widen, .add = &add, .narrow = &narrow};

}  // namespace rbee::cpu
