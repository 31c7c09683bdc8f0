#pragma once
// The two products of attention_tile.h for the few query rows of a decode step: reads keys and
// values in place, once, without transposing them. Include after attention_tile.h.

#include "backends/cpu/simd/kv_pages.h"

namespace rbee::cpu {
namespace {

constexpr int64_t kFewRows = 4;  // query rows whose sums stay in registers

RB_INLINE bool takes_few_rows(const AttentionTile& tile, int64_t rows) {
  return rows <= kFewRows && tile.dim % kLanes == 0;
}

RB_INLINE Vec load_row(const float* row) {
  return load(row);
}
#ifdef __AVX512F__
RB_INLINE Vec load_row(const f16* row) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(row)));
}
template <typename Row>
RB_INLINE Vec load_row(const Row& row) {
  return _mm512_insertf32x8(_mm512_castps256_ps512(load8(row)), load8(row + 8), 1);
}
RB_INLINE Vec8 add_halves(Vec x) {
  return _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
}
#else
template <typename Row>
RB_INLINE Vec load_row(const Row& row) {
  return load8(row);
}
RB_INLINE Vec8 add_halves(Vec x) {
  return x;
}
#endif

// tile.scores = q * keys^T; of null rows 0.
template <int kRows, typename Row>
RB_INLINE void score_rows(const AttentionTile& tile, const Row keys[kKeys]) {
  for (int first = 0; first < kKeys; first += 8) {
    Vec8 sums[kRows][8];
    for (int j = 0; j < 8; ++j) {
      Vec acc[kRows];
      for (int r = 0; r < kRows; ++r) acc[r] = splat(0.0f);
      const Row key = keys[first + j];
      for (int64_t i = 0; key != nullptr && i < tile.dim; i += kLanes) {
        const Vec part = load_row(key + i);
        for (int r = 0; r < kRows; ++r) acc[r] = fma(load(tile.q + r * tile.dim + i), part, acc[r]);
      }
      for (int r = 0; r < kRows; ++r) sums[r][j] = add_halves(acc[r]);
    }
    for (int r = 0; r < kRows; ++r) store8(tile.scores + r * kKeys + first, add_up8(sums[r]));
  }
}

// tile.out += weights * values in kVecs vectors of columns.
template <int kRows, int kVecs, typename Row>
RB_INLINE void add_row_columns(const AttentionTile& tile, const Row values[kKeys], int64_t count,
                               int64_t column) {
  Vec acc[kRows][kVecs];
  float* out = tile.out + column;
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVecs; ++v) acc[r][v] = load(out + r * tile.padded_dim + v * kLanes);
  }
  for (int64_t j = 0; j < count; ++j) {
    Vec part[kVecs];
    for (int v = 0; v < kVecs; ++v) part[v] = load_row(values[j] + column + v * kLanes);
    for (int r = 0; r < kRows; ++r) {
      const Vec weight = splat(tile.scores[r * kKeys + j]);
      for (int v = 0; v < kVecs; ++v) acc[r][v] = fma(weight, part[v], acc[r][v]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVecs; ++v) store(out + r * tile.padded_dim + v * kLanes, acc[r][v]);
  }
}

template <int kRows, typename Row>
RB_INLINE void add_rows(const AttentionTile& tile, const Row values[kKeys], int64_t count) {
  int64_t column = 0;
  for (; column + 2 * kPanel <= tile.dim; column += 2 * kPanel) {
    add_row_columns<kRows, kPanelVecs * 2>(tile, values, count, column);
  }
  for (; column < tile.dim; column += kLanes) {
    add_row_columns<kRows, 1>(tile, values, count, column);
  }
}

// body.operator()<rows>()
template <typename Body>
RB_INLINE void with_few_rows(int64_t rows, const Body& body) {
  if (rows == 1) return body.template operator()<1>();
  if (rows == 2) return body.template operator()<2>();
  if (rows == 3) return body.template operator()<3>();
  body.template operator()<4>();
}

template <typename Row>
void score_few_rows(const AttentionTile& tile, int64_t rows, const Row keys[kKeys]) {
  with_few_rows(rows, [&]<int kRows>() { score_rows<kRows>(tile, keys); });
}

// The first `count` values; the others are null.
template <typename Row>
void add_few_rows(const AttentionTile& tile, int64_t rows, const Row values[kKeys], int64_t count) {
  with_few_rows(rows, [&]<int kRows>() { add_rows<kRows>(tile, values, count); });
}

}  // namespace
}  // namespace rbee::cpu
