#pragma once
// y = x * weight^T + bias for up to 64 rows of x and packed weights (packed_weight.h) on tensor
// cores, sm_80 and later (PTX ISA: mma.m16n8k16). The way of matvec_mma.cu: rows of the weight are
// the product's first operand, and a lane gives it what it has read, here 32 codes that share a
// scale, as values of x's type in registers. Limited by the memory that the weights are read from;
// with many rows by what reads x from the first-level cache.
#include "backends/cuda/kernels/mma_tiles.h"
#include "backends/gpu/kernels/packed_piece.h"
#include "backends/shared/matvec_params.h"

namespace rbee {
namespace gpu {

// Arithmetic on two neighbours in a word.
template <class T>
RB_DEVICE u32 fma_pair(u32 a, u32 b, u32 c);
template <>
RB_DEVICE u32 fma_pair<f16>(u32 a, u32 b, u32 c) {
  u32 out;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(c));
  return out;
}
template <>
RB_DEVICE u32 fma_pair<bf16>(u32 a, u32 b, u32 c) {
  u32 out;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(c));
  return out;
}

// The quants of four neighbouring codes, in the bytes of a word, exactly as values of T: a byte in
// the low bits of a number whose last place counts 1, less that number.
template <class T, bool kSigned, int kOffset>
struct Widen;
template <bool kSigned, int kOffset>
struct Widen<f16, kSigned, kOffset> {
  RB_DEVICE static void run(u32 codes, u32 (&pairs)[2]) {
    if (kSigned) codes ^= 0x80808080u;  // + 128
    const u32 less =
        round_pair<f16>(-1024.0f - (kSigned ? 128 : kOffset), -1024.0f - (kSigned ? 128 : kOffset));
    const u32 one = 0x3c003c00u;
    pairs[0] = fma_pair<f16>(__byte_perm(codes, 0x64646464u, 0x4140), one, less);
    pairs[1] = fma_pair<f16>(__byte_perm(codes, 0x64646464u, 0x4342), one, less);
  }
};
template <int kOffset>
struct Widen<bf16, false, kOffset> {
  RB_DEVICE static void run(u32 codes, u32 (&pairs)[2]) {
    const u32 less = round_pair<bf16>(-128.0f - kOffset, -128.0f - kOffset);
    const u32 one = 0x3f803f80u;
    pairs[0] = fma_pair<bf16>(__byte_perm(codes, 0x43434343u, 0x4140), one, less);
    pairs[1] = fma_pair<bf16>(__byte_perm(codes, 0x43434343u, 0x4342), one, less);
  }
};
// Seven bits fit: the eighth makes 256 of 128, which is what a negative number is less by.
template <int kOffset>
struct Widen<bf16, true, kOffset> {
  RB_DEVICE static void run(u32 codes, u32 (&pairs)[2]) {
    const u32 minus_one = 0xbf80bf80u;
    const u32 first = __byte_perm(codes, 0x43434343u, 0x4140);
    const u32 second = __byte_perm(codes, 0x43434343u, 0x4342);
    pairs[0] = fma_pair<bf16>(first & 0xff80ff80u, minus_one, first & 0xff7fff7fu);
    pairs[1] = fma_pair<bf16>(second & 0xff80ff80u, minus_one, second & 0xff7fff7fu);
  }
};

// kN: 8 rows of x each.
template <class Block, class T, int kN>
class PackedMma {
 public:
  RB_DEVICE explicit PackedMma(const MatvecParams& params)
      : p_(params),
        part_(params.parts[0]),
        at_(packed_layout<Block>(params.in)),
        lane_(static_cast<int>(thread_x()) % 32),
        warp_(static_cast<int>(thread_x()) / 32),
        groups_(static_cast<i32>(params.in / 32)) {
    // Unrolled: see MatvecTile.
#pragma unroll
    for (int i = 1; i < kMatvecParts; ++i) {
      if (i < p_.part_count && block_x() >= p_.parts[i].first_block) part_ = p_.parts[i];
    }
    const i64 block = block_x() - part_.first_block;
    block_out_ = block * (kWarps / p_.split) * kOuts;
    const i64 first = block_out_ + warp_ / p_.split * kOuts;
#pragma unroll
    for (int r = 0; r < kLaneRows; ++r) {
      const i64 out = first + r * 8 + lane_ / 4;
      weight_[r] = static_cast<const u8*>(part_.weight) +
                   (out < part_.outs ? out : part_.outs - 1) * at_.row_bytes;
    }
#pragma unroll
    for (int n = 0; n < kN; ++n) {
      const int row = n * 8 + lane_ / 4;
      x_[n] = static_cast<u32>(row < p_.rows ? row : p_.rows - 1) * static_cast<u32>(p_.in);
    }
  }

  RB_DEVICE void run() {
    const i32 chunks = (groups_ + kChunk - 1) / kChunk;
    i32 chunk = warp_ % p_.split;
    Fetched next;
    if (chunk < chunks) fetch(next, chunk);
    while (chunk < chunks) {
      const Fetched now = next;
      const i32 group = chunk * kChunk + lane_ % 4;
      chunk += p_.split;
      if (chunk < chunks) fetch(next, chunk);
      multiply(now, group);
    }
    finish();
  }

 private:
  using F = PackedFormat<Block>;
  using Piece = PackedPiece<Block>;
  static constexpr int kWarps = kMatvecThreads / 32;
  static constexpr int kTiles = 2;              // 16 rows of the weight each, of a warp
  static constexpr int kLaneRows = 2 * kTiles;  // that a lane reads of: lane / 4 + 8 r
  static constexpr int kOuts = 16 * kTiles;
  static constexpr int kChunk = 4;  // groups of 32 that four lanes read at once
  static constexpr int kPieces = 32 / Piece::kElements;
  static constexpr bool kSigned = F::kLow == 8 || F::kCodeBook != CodeBook::none;
  static constexpr int kHalves = Block::kGroup == 16 ? 2 : 1;  // scales for 32 elements
  static constexpr u32 kMinusZeros = 0x80008000u;
  static constexpr bool kMinima = F::kOffset == 0 && !kSigned;

  struct Fetched {
    Piece pieces[kLaneRows][kPieces];
    StoredScale<Block> scales[kLaneRows];
  };

  // Past the last group it is read again, and x counts as zeros.
  RB_DEVICE void fetch(Fetched& to, i32 chunk) const {
    const i32 mine = chunk * kChunk + lane_ % 4;
    const i32 group = mine < groups_ ? mine : groups_ - 1;
#pragma unroll
    for (int r = 0; r < kLaneRows; ++r) {
      const u8* row = weight_[r];
#pragma unroll
      for (int i = 0; i < kPieces; ++i) {
        to.pieces[r][i].load(row, row + at_.high, group * kPieces + i);
      }
      to.scales[r].load(row + at_.scale, row + at_.super, group);
    }
  }

  RB_DEVICE void multiply(const Fetched& from, i32 group) {
    u32 codes[kLaneRows][8];
    u32 by[kLaneRows][kHalves], plus[kLaneRows][kHalves];
#pragma unroll
    for (int r = 0; r < kLaneRows; ++r) {
      unpack(from.pieces[r], codes[r]);
      const PackedScale scale = from.scales[r].value(group & 7);
#pragma unroll
      for (int half = 0; half < kHalves; ++half) {
        by[r][half] = round_pair<T>(scale.d[half], scale.d[half]);
        plus[r][half] = kMinima ? round_pair<T>(scale.m[half], scale.m[half]) : kMinusZeros;
      }
    }
#pragma unroll
    for (int eighth = 0; eighth < 4; ++eighth) {  // 8 of the 32
      u32 w[kTiles][2][4];
#pragma unroll
      for (int r = 0; r < kLaneRows; ++r) {
        const int half = eighth / 2 % kHalves;
#pragma unroll
        for (int word = 0; word < 2; ++word) {
          u32 pairs[2];
          Widen<T, kSigned, F::kOffset>::run(codes[r][2 * eighth + word], pairs);
          w[r / 2][word][r % 2] = fma_pair<T>(pairs[0], by[r][half], plus[r][half]);
          w[r / 2][word][r % 2 + 2] = fma_pair<T>(pairs[1], by[r][half], plus[r][half]);
        }
      }
      multiply_eighth(w, group, eighth);
    }
  }

  RB_DEVICE static void unpack(const Piece (&pieces)[kPieces], u32 (&codes)[8]) {
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      u32 some[8 / kPieces];
      pieces[i].unpack(some);
      for (int w = 0; w < 8 / kPieces; ++w) codes[i * (8 / kPieces) + w] = some[w];
    }
  }

  RB_DEVICE void multiply_eighth(const u32 (&w)[kTiles][2][4], i32 group, int eighth) {
    const bool live = group < groups_;
    const u32 k = static_cast<u32>(live ? group : 0) * 32 + eighth * 8;
#pragma unroll
    for (int n = 0; n < kN; ++n) {
      uint4 x = *reinterpret_cast<const uint4*>(static_cast<const T*>(p_.x) + (x_[n] + k));
      if (!live) x = make_uint4(0, 0, 0, 0);
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        multiply_add<T>(sums_[t][n], w[t][0], x.x, x.y);
        multiply_add<T>(sums_[t][n], w[t][1], x.z, x.w);
      }
    }
  }

  // y = the sums of the warps that share rows, in their order, + bias; 16 rows of x at a time. All
  // threads of the block take part.
  RB_DEVICE void finish() {
    constexpr int kAtOnce = kN < 2 ? kN : 2;
    RB_SHARED float partial[kWarps][8 * kAtOnce][kOuts];
#pragma unroll
    for (int n0 = 0; n0 < kN; n0 += kAtOnce) {
      if (n0 > 0) barrier();
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
#pragma unroll
        for (int n = 0; n < kAtOnce; ++n) {
          for (int i = 0; i < 4; ++i) {
            partial[warp_][n * 8 + lane_ % 4 * 2 + i % 2][t * 16 + i / 2 * 8 + lane_ / 4] =
                sums_[t][n0 + n][i];
          }
        }
      }
      barrier();
      const int left = p_.rows - n0 * 8;
      write_rows(partial, n0 * 8, left < 8 * kAtOnce ? left : 8 * kAtOnce);
    }
  }
  template <int kRows>
  RB_DEVICE void write_rows(const float (&partial)[kWarps][kRows][kOuts], int first, int rows) {
    const T* bias = static_cast<const T*>(part_.bias);
    const int of_block = kWarps / p_.split * kOuts;
    for (int at = static_cast<int>(thread_x()); at < rows * of_block; at += kMatvecThreads) {
      const int within = at % of_block, row = at / of_block;
      const int warp = within / kOuts * p_.split, m = within % kOuts;
      const i64 out = block_out_ + within;
      if (out >= part_.outs) continue;
      float sum = bias != nullptr ? load_value(bias[out]) : 0.0f;
      for (int s = 0; s < p_.split; ++s) sum += partial[warp + s][row][m];
      static_cast<T*>(part_.y)[(first + row) * part_.outs + out] = store_value<T>(sum);
    }
  }

  const MatvecParams& p_;
  MatvecPart part_;
  PackedLayout at_;
  int lane_, warp_;
  i32 groups_;  // of 32 elements, in a row
  i64 block_out_;
  const u8* weight_[kLaneRows];
  u32 x_[kN];  // where rows of x begin
  float sums_[kTiles][kN][4] = {};
};

#define RB_PACKED_MMA(dtype, Block, x, T, n, blocks)                                  \
  RB_KERNEL_OF(matvec_mma_##x##_##dtype##_n##n, kMatvecThreads, blocks, MatvecParams, \
               (PackedMma<Block, T, n>(p).run()))
#define RB_MATVEC_MMA_PACKED(dtype, Block)      \
  RB_PACKED_MMA(dtype, Block, f16, f16, 2, 2)   \
  RB_PACKED_MMA(dtype, Block, f16, f16, 8, 1)   \
  RB_PACKED_MMA(dtype, Block, bf16, bf16, 2, 2) \
  RB_PACKED_MMA(dtype, Block, bf16, bf16, 8, 1)

}  // namespace gpu
}  // namespace rbee
