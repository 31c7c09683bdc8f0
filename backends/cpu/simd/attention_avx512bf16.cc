// Dense attention of bf16 with AVX-512 BF16: vdpbf16ps multiplies pairs of elements and adds both
// products to a float.

#include "backends/cpu/simd/simd.h"

// The vec header first: the loops are written in its terms.
#include "backends/cpu/simd/vec_avx512.h"

#include "backends/cpu/simd/attention_bf16_loops.h"

namespace rbee::cpu {
namespace {

constexpr int kBlockRows = 16;  // of a BlockProduct

RB_INLINE __m512bh as_pairs(__m512i x) {
  return __builtin_bit_cast(__m512bh, x);
}

// kRows rows and kTiles tiles of columns, whose sums stay in registers.
template <int kRows, int kTiles, bool kAdd>
RB_INLINE void multiply_pairs(const BlockProduct& p, int64_t row) {
  const uint16_t* left = p.left + row * p.left_step;
  float* to = p.sums + row * p.sums_step;
  Vec sums[kRows][kTiles];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int t = 0; t < kTiles; ++t) {
      sums[r][t] = kAdd ? load(to + r * p.sums_step + t * kLanes) : splat(0.0f);
    }
  }
  const std::byte* right = p.right;
  for (int64_t k = 0; k < p.depth; k += kTileInputs, right += p.right_depth) {
    const int64_t end = within(p.depth - k, 0, kTileInputs);
    for (int64_t i = 0; i < end; i += 2) {
      __m512bh columns[kTiles];
#pragma GCC unroll 4
      for (int t = 0; t < kTiles; ++t) {
        columns[t] = as_pairs(_mm512_loadu_si512(right + t * p.right_tile + i / 2 * kLineBytes));
      }
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        int32_t two;
        __builtin_memcpy(&two, left + r * p.left_step + k + i, sizeof(two));
        const __m512bh pair = as_pairs(_mm512_set1_epi32(two));
#pragma GCC unroll 4
        for (int t = 0; t < kTiles; ++t) {
          sums[r][t] = _mm512_dpbf16_ps(sums[r][t], columns[t], pair);
        }
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int t = 0; t < kTiles; ++t) store(to + r * p.sums_step + t * kLanes, sums[r][t]);
  }
}

template <int kRows, int kTiles, bool kAdd>
void multiply_columns(BlockProduct& p) {
  for (int64_t row = 0; row < kBlockRows; row += kRows) multiply_pairs<kRows, kTiles, kAdd>(p, row);
  p.right += kTiles * p.right_tile;
  p.sums += kTiles * kLanes;
}

// Register tiles of 16 or 24 sums, whatever the number of columns: fewer would wait for each other.
struct PairProducts {
  template <bool kAdd>
  static void multiply(BlockProduct p) {
    int64_t tiles = units(p.columns, kLanes);
    if (tiles % 2 == 1 && tiles > 1) {
      multiply_columns<8, 3, kAdd>(p);
      tiles -= 3;
    }
    for (; tiles >= 2; tiles -= 2) multiply_columns<8, 2, kAdd>(p);
    if (tiles == 1) multiply_columns<kBlockRows, 1, kAdd>(p);
  }
};

}  // namespace

const Impl<AttentionArgs> avx512bf16_attention{"avx512bf16", refuse_plain_bf16,
                                               run_plain_bf16<PairProducts>};

}  // namespace rbee::cpu
