#pragma once
// Products of f16 weights with AMX that keep every bit: a weight is a sum of two bf16 numbers and
// an input of three, both exactly, and of the six products the smallest, 2^-24 of the whole, is
// left out. Infinite weights give NaN. Include after vec_avx512.h and tiles_amx.h.

#include "backends/cpu/linear/kernels.h"

namespace {

// The upper half of a float is a bf16 number of the same sign; what remains is exact in f32.
[[gnu::always_inline]] inline Floats upper_half(Floats x) {
  return _mm512_castsi512_ps(
      _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
}

// x = parts[0] + parts[1] + parts[2], filled up with zeros to whole tiles. An infinite x is all in
// the last part, which meets the weights' upper parts alone: what remains of a weight may be 0.
void split_inputs(const float* x, int64_t in, uint16_t* const (&parts)[panel::kSplitParts]) {
  const int64_t padded = (in + kTileInputs - 1) / kTileInputs * kTileInputs;
  for (int64_t i = 0; i < padded; i += kLanes) {
    const int64_t left = in - i;
    const auto mask = static_cast<__mmask16>(left >= kLanes ? 0xffff
                                             : left > 0     ? (1 << left) - 1
                                                            : 0);
    const Floats input = _mm512_maskz_loadu_ps(mask, x + i);
    constexpr int kPlusInfinity = 0x08, kMinusInfinity = 0x10;
    const __mmask16 infinite = _mm512_fpclass_ps_mask(input, kPlusInfinity | kMinusInfinity);
    Floats rest = _mm512_maskz_mov_ps(_knot_mask16(infinite), input);
#pragma GCC unroll 3
    for (uint16_t* part : parts) {
      if (part == parts[panel::kSplitParts - 1]) rest = _mm512_mask_mov_ps(rest, infinite, input);
      const Floats upper = upper_half(rest);
      const __m512i bits = _mm512_srli_epi32(_mm512_castps_si512(upper), 16);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(part + i), _mm512_cvtepi32_epi16(bits));
      rest = _mm512_sub_ps(rest, upper);
    }
  }
}

// Inputs k (even) and k + 1 of each row in the pairs that tiles want.
[[gnu::always_inline]] inline __m512i pairs_of_upper(Floats even, Floats odd) {
  return _mm512_or_si512(_mm512_srli_epi32(_mm512_castps_si512(even), 16),
                         _mm512_castps_si512(odd));
}

constexpr int64_t kTileElements = kTileInputs * panel::kPanelRows;

// For each 32 inputs a tile of the weights' upper parts and one of what remains.
void unpack_split_f16(const std::byte* packed, int64_t in, const panel::UnpackedPanel& out) {
  const auto* halves = reinterpret_cast<const uint16_t*>(packed);
  const int64_t padded = (in + kTileInputs - 1) / kTileInputs * kTileInputs;
  for (int64_t k = 0; k < padded; k += 2) {
    const Floats even = k < in ? load_halves(halves + k * panel::kPanelRows, 0) : all(0);
    const Floats odd = k + 1 < in ? load_halves(halves + (k + 1) * panel::kPanelRows, 0) : all(0);
    const Floats even_upper = upper_half(even), odd_upper = upper_half(odd);
    uint16_t* to =
        out.bf16 + k / kTileInputs * 2 * kTileElements + k % kTileInputs * panel::kPanelRows;
    _mm512_storeu_si512(to, pairs_of_upper(even_upper, odd_upper));
    _mm512_storeu_si512(to + kTileElements, pairs_of_upper(_mm512_sub_ps(even, even_upper),
                                                           _mm512_sub_ps(odd, odd_upper)));
  }
}

// Products of one part of x with a tile of the weights, or with both.
template <int kTiles, bool kBoth>
[[gnu::always_inline]] inline void add_part(const std::byte* x, int64_t x_bytes) {
  _tile_loadd(3, x, x_bytes);
  if constexpr (kTiles > 1) _tile_loadd(4, x + kTileRows * x_bytes, x_bytes);
  if constexpr (kTiles > 2) _tile_loadd(5, x + 2 * kTileRows * x_bytes, x_bytes);
  _tile_dpbf16ps(0, 3, 6);
  if constexpr (kTiles > 1) _tile_dpbf16ps(1, 4, 6);
  if constexpr (kTiles > 2) _tile_dpbf16ps(2, 5, 6);
  if constexpr (kBoth) {
    _tile_dpbf16ps(0, 3, 7);
    if constexpr (kTiles > 1) _tile_dpbf16ps(1, 4, 7);
    if constexpr (kTiles > 2) _tile_dpbf16ps(2, 5, 7);
  }
}

template <int kTiles>
void run_split_group(const panel::PanelProduct& p, int64_t row) {
  load_sums<kTiles>(p, row);
  const int64_t x_bytes = p.x.stride * static_cast<int64_t>(sizeof(uint16_t));
  const auto* weights = reinterpret_cast<const std::byte*>(p.panel.bf16);
  for (int64_t k = 0; k < p.in; k += kTileInputs) {
    const auto part = [&](int i) {
      return reinterpret_cast<const std::byte*>(p.x.split[i] + row * p.x.stride + k);
    };
    _tile_loadd(6, weights, kTileBytes);
    _tile_loadd(7, weights + kTileRows * kTileBytes, kTileBytes);
    add_part<kTiles, true>(part(0), x_bytes);
    add_part<kTiles, true>(part(1), x_bytes);
    add_part<kTiles, false>(part(2), x_bytes);
    weights += 2 * kTileRows * kTileBytes;
  }
  store_sums<kTiles>(p, row);
}

void run_split_rows(const panel::PanelProduct& p) {
  run_tiles(p, [](const auto& product, int64_t row, auto tiles) {
    run_split_group<tiles.kCount>(product, row);
  });
}

}  // namespace
