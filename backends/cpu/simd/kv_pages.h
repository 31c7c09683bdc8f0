#pragma once
// Rows of a q8_0 cache (layout and rounding: backends/shared/kv_page.h, whose functions have
// linkage and are not called here), used like pointers to numbers. Include after a vec header.

#include "backends/api/view.h"
#include "backends/shared/kv_page.h"

namespace rbee::cpu {
namespace {

using shared::kPageGroup;

// Points to an element of a row. Advance it by whole groups, or by 8 within a group.
struct Q8Row {
  Q8Row() = default;
  RB_INLINE Q8Row(decltype(nullptr)) {}
  RB_INLINE Q8Row(uint8_t* row_codes, uint8_t* row_scales) : codes(row_codes), scales(row_scales) {}

  uint8_t* codes = nullptr;  // of the row's first element
  uint8_t* scales = nullptr;
  int64_t element = 0;

  RB_INLINE Q8Row operator+(int64_t elements) const {
    Q8Row out = *this;
    out.element += elements;
    return out;
  }
  RB_INLINE bool operator!=(decltype(nullptr)) const { return codes != nullptr; }
  RB_INLINE uint8_t* code() const { return codes + element; }
  RB_INLINE uint8_t* scale() const { return scales + element / kPageGroup * 2; }
};

RB_INLINE Q8Row page_row(const View& cache, int64_t block, int64_t head, int64_t row) {
  const int64_t rows = cache.sizes[2];
  const int64_t dim = cache.sizes[3];
  const int64_t first = block * cache.strides[0] + head * cache.strides[1];
  uint8_t* page = static_cast<uint8_t*>(cache.data) + first / kPageGroup * (kPageGroup + 2);
  return {page + row * dim, page + rows * dim + row * (dim / kPageGroup) * 2};
}

RB_INLINE float scale_of(const Q8Row& row) {
  uint16_t bits;
  __builtin_memcpy(&bits, row.scale(), sizeof bits);
  return half_value(bits);
}
RB_INLINE Vec8 load8(const Q8Row& row) {
  const Vec8 scale = splat8(scale_of(row));
  return load8(reinterpret_cast<const int8_t*>(row.code())) * scale;
}
RB_INLINE float load1(const Q8Row& row) {
  return static_cast<float>(static_cast<int8_t>(*row.code())) * scale_of(row);
}

// An f16 scale and the number of codes in a unit, 0 if the scale is 0 or NaN.
struct GroupScale {
  uint16_t bits;
  float inverse;
};
RB_INLINE GroupScale scale_of(uint32_t largest) {
  if (largest >= 0x7f800000u) return {0x7e00, 0.0f};
  const float step = __builtin_bit_cast(float, largest) / 127.0f;
  const float scale = step < 65504.0f ? step : 65504.0f;
  const uint16_t bits = half_bits(scale);
  return {bits, bits == 0 ? 0.0f : 1.0f / scale};
}

// Rounds 32 numbers into a group.
RB_INLINE void store_group(const Q8Row& to, const float* from) {
  Vec8 x[4];
  for (int i = 0; i < 4; ++i) x[i] = load8(from + 8 * i);
  const GroupScale scale = scale_of(largest_magnitude(x));
  __builtin_memcpy(to.scale(), &scale.bits, sizeof scale.bits);
  store_codes(to.code(), x, scale.inverse);
}

}  // namespace
}  // namespace rbee::cpu
