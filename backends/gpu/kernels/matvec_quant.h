#pragma once
// y = x * weight^T + bias for up to 8 rows of x and packed block-quantised weights
// (packed_weight.h), with x as int8 by groups of 32 and integer dot products, e4m3 codes as f16.
// The weights' memory limits it. A lane takes 32 codes of a row at a time (16 of 8-bit formats); x
// comes from the first-level cache in the order that makes a wave's reads of it adjoin.
#include "backends/gpu/instructions.h"
#include "backends/gpu/kernels/matvec_tiles.h"
#include "backends/gpu/kernels/packed_points.h"
#include "backends/shared/packed_weight.h"

namespace rbee {
namespace gpu {

// The start of piece `piece` (16 inputs) of a row of quantised x, in bytes: of each two pieces for
// every lane of a wave, first those with an even number, then the others.
template <int kWave>
RB_DEVICE i64 x_piece(i64 piece) {
  const i64 chunk = piece / (2 * kWave);
  const i64 lane = piece % (2 * kWave) / 2;
  return (chunk * 2 * kWave + piece % 2 * kWave + lane) * 16;
}

template <class Block, int kWave, int kBatch>
struct MatvecQuant {
  using F = PackedFormat<Block>;
  using Piece = PackedPiece<Block>;
  static constexpr int kOuts = matvec_outs(kBatch);
  static constexpr int kSteps = matvec_steps(kWave, kBatch);
  static constexpr int kWords = Piece::kElements / 4;
  static constexpr int kPerGroup = 32 / Piece::kElements;
  static constexpr bool kHalves = Block::kGroup == 16;  // two scales for 32 elements
  static constexpr bool kMinima = F::kOffset == 0 && F::kLow < 8 && F::kCodeBook == CodeBook::none;

  const MatvecQuantParams& p;
  PackedLayout at;
  const u8* weight[kOuts];
  i64 pieces;  // of a row
  float sums[kOuts][kBatch];

  RB_DEVICE i64 within(i64 piece) const { return piece < pieces ? piece : pieces - 1; }

  RB_DEVICE static float multiply(const u32 (&codes)[kWords], const PackedScale& scale,
                                  const PieceX<Block>& x, const XGroup& group) {
    if constexpr (Piece::kFloats) {
      E4m3Dot dot;
#pragma unroll
      for (int w = 0; w < kWords; ++w) dot.add(codes[w], x.words[2 * w], x.words[2 * w + 1]);
      return scale.d[0] * dot.sum() * group.d;
    }
    const i32 s0 = group.sums[0], s1 = group.sums[1];
    i32 dots[2] = {-F::kOffset * (kHalves ? s0 : s0 + s1), -F::kOffset * s1};
#pragma unroll
    for (int w = 0; w < kWords; ++w) {
      i32& dot = dots[kHalves ? w / 4 : 0];
      dot = dot4(codes[w], x.words[w], dot);
    }
    float sum = scale.d[0] * static_cast<float>(dots[0]);
    if (kHalves) sum += scale.d[1] * static_cast<float>(dots[1]);
    if (kMinima) sum += scale.m[0] * static_cast<float>(kHalves ? s0 : s0 + s1);
    if (kMinima && kHalves) sum += scale.m[1] * static_cast<float>(s1);
    return sum * group.d;
  }

  // Adds the products of one piece of each row. A piece beyond the row's end (not live) counts as
  // 0.
  RB_DEVICE void add(const Piece (&from)[kOuts], const PackedScale (&scales)[kOuts], i64 piece,
                     bool live) {
    u32 codes[kOuts][kWords];
    for (int o = 0; o < kOuts; ++o) from[o].unpack(codes[o]);
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      const i64 row = b < p.rows ? b : p.rows - 1;
      const i8* quants = p.x.quants + row * p.x.row_bytes;
      PieceX<Block> x;
#pragma unroll
      for (int half = 0; half < Piece::kElements / 16; ++half) {
        const i64 first = x_piece<kWave>(piece * (Piece::kElements / 16) + half);
        const auto words = *reinterpret_cast<const Bytes16*>(quants + first);
        for (int w = 0; w < 4; ++w) x.put(4 * half + w, words.words[w]);
      }
      const XGroup* groups = static_cast<const XGroup*>(p.x.groups);
      const XGroup group = groups[row * (p.in / 32) + piece / kPerGroup];
#pragma unroll
      for (int o = 0; o < kOuts; ++o) {
        const float product = multiply(codes[o], scales[o], x, group);
        sums[o][b] += live ? product : 0.0f;
      }
    }
  }

  // kSteps pieces of each row from `first` on: all loads, then all products.
  RB_DEVICE void trip(i64 first, i64 stride) {
    Piece from[kSteps][kOuts];
    PackedScale scales[kSteps][kOuts];
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const i64 piece = within(first + step * stride);
#pragma unroll
      for (int o = 0; o < kOuts; ++o) {
        from[step][o].load(planes_of(weight[o], at), piece);
        scales[step][o] = packed_scale<Block>(weight[o], at, piece / kPerGroup);
      }
    }
    loads_before();
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const i64 piece = first + step * stride;
      add(from[step], scales[step], within(piece), piece < pieces);
    }
  }

  RB_DEVICE void run() {
    share_book<Block, kMatvecThreads>();
    const MatvecTile<kWave, kOuts, kBatch> tile(p);
    at = packed_layout<Block>(p.in);
    pieces = p.in / Piece::kElements;
#pragma unroll
    for (int o = 0; o < kOuts; ++o) {
      weight[o] = tile.template weight<u8>() + tile.out(o) * at.row_bytes;
      for (int b = 0; b < kBatch; ++b) sums[o][b] = 0;
    }
    const i64 stride = static_cast<i64>(p.split) * kWave;
    for (i64 first = tile.slice * kWave; first < pieces; first += kSteps * stride) {
      trip(first + tile.lane, stride);
    }
    tile.finish(sums, p.rows, p.split, [&](i64 to, i64 out, float sum) {
      if (p.x_type == 0) return store<float>(tile, to, out, sum);
      if (p.x_type == 1) return store<f16>(tile, to, out, sum);
      store<bf16>(tile, to, out, sum);
    });
  }

  template <class T, class Tile>
  RB_DEVICE static void store(const Tile& tile, i64 to, i64 out, float sum) {
    if (tile.part.bias != nullptr) sum += load_value(tile.template bias<T>()[out]);
    tile.template y<T>()[to] = store_value<T>(sum);
  }
};

template <class Block, int kWave, int kBatch>
RB_DEVICE void matvec_quant(const MatvecQuantParams& p) {
  MatvecQuant<Block, kWave, kBatch> work{p};
  work.run();
}

#define RB_MATVEC_BATCH(lanes, wave, dtype, Block, batch)                          \
  RB_KERNEL(matvec_##dtype##_b##batch##_##wave, kMatvecThreads, MatvecQuantParams, \
            (matvec_quant<Block, lanes, batch>(p)))
#define RB_MATVEC(dtype, Block)              \
  RB_WAVES(RB_MATVEC_BATCH, dtype, Block, 1) \
  RB_WAVES(RB_MATVEC_BATCH, dtype, Block, 4) \
  RB_WAVES(RB_MATVEC_BATCH, dtype, Block, 8)

}  // namespace gpu
}  // namespace rbee
