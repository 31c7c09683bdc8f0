#pragma once
// Rows of f32, f16 or bf16 as floats and back. Include after a vec header.

#include "backends/cpu/linear/kernels.h"
#include "backends/cpu/simd/storage.h"

namespace rbee::cpu {
namespace {

template <typename T>
RB_INLINE void widen_row(const T* from, int64_t count, float* to) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(to + i, load(from + i));
  if (i < count) store_first(to + i, load_first(from + i, count - i), count - i);
}

template <typename T>
RB_INLINE void add_row(const T* from, int64_t count, float* sums) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(sums + i, load(sums + i) + load(from + i));
  if (i == count) return;
  const int64_t n = count - i;
  store_first(sums + i, load_first(sums + i, n) + load_first(from + i, n), n);
}

template <typename T>
RB_INLINE void narrow_row(const float* from, int64_t count, T* to) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(to + i, load(from + i));
  if (i < count) store_first(to + i, load_first(from + i, count - i), count - i);
}

void widen(DType dtype, const void* from, int64_t count, float* to) {
  with_storage(dtype, [&]<typename T>() { widen_row(static_cast<const T*>(from), count, to); });
}

void add(DType dtype, const void* from, int64_t count, float* sums) {
  with_storage(dtype, [&]<typename T>() { add_row(static_cast<const T*>(from), count, sums); });
}

void narrow(DType dtype, const float* from, int64_t count, void* to) {
  with_storage(dtype, [&]<typename T>() { narrow_row(from, count, static_cast<T*>(to)); });
}

constexpr FloatRows kFloatRows{.widen = &widen, .add = &add, .narrow = &narrow};

}  // namespace
}  // namespace rbee::cpu
