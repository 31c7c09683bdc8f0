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
  return _cvtsh_ss(bits);
}
RB_INLINE __m256 load8(const Q8Row& row) {
  const __m128i codes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(row.code()));
  return _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes)),
                       _mm256_set1_ps(scale_of(row)));
}
RB_INLINE float load1(const Q8Row& row) {
  return static_cast<float>(static_cast<int8_t>(*row.code())) * scale_of(row);
}

// As bits, which sort like magnitudes, with NaN above infinity.
RB_INLINE uint32_t largest_magnitude(const __m256 x[4]) {
  __m256i most = _mm256_setzero_si256();
  for (int i = 0; i < 4; ++i) {
    const __m256 magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x[i]);
    most = _mm256_max_epi32(most, _mm256_castps_si256(magnitude));
  }
  __m128i half = _mm_max_epi32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
  half = _mm_max_epi32(half, _mm_shuffle_epi32(half, 0x4e));
  half = _mm_max_epi32(half, _mm_shuffle_epi32(half, 0xb1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(half));
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
  const auto bits =
      static_cast<uint16_t>(_cvtss_sh(scale, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  return {bits, bits == 0 ? 0.0f : 1.0f / scale};
}

// Rounds 32 numbers into a group.
RB_INLINE void store_group(const Q8Row& to, const float* from) {
  __m256 x[4];
  for (int i = 0; i < 4; ++i) x[i] = load8(from + 8 * i);
  const GroupScale scale = scale_of(largest_magnitude(x));
  __builtin_memcpy(to.scale(), &scale.bits, sizeof scale.bits);
  const __m256 inverse = _mm256_set1_ps(scale.inverse);
  __m256i steps[4];
  for (int i = 0; i < 4; ++i) {
    // min_ps gives its second operand where the first is NaN.
    __m256 within = _mm256_min_ps(_mm256_mul_ps(x[i], inverse), _mm256_set1_ps(127.0f));
    within = _mm256_max_ps(within, _mm256_set1_ps(-127.0f));
    steps[i] = _mm256_cvtps_epi32(within);
  }
  // Packing works on 128-bit halves: words 0 4 1 5 2 6 3 7 are then in order.
  const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(steps[0], steps[1]),
                                           _mm256_packs_epi32(steps[2], steps[3]));
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to.code()),
                      _mm256_permutevar8x32_epi32(bytes, order));
}

}  // namespace
}  // namespace rbee::cpu
