#pragma once
// y = x * weight^T + bias for up to 64 rows of x and packed weights (packed_weight.h) on tensor
// cores, sm_80 and later (PTX ISA: mma.m16n8k16, cp.async). Rows of the weight are the product's
// first operand: a warp has 16 of a tile's, and a lane gives the product what it has read of two,
// 32 codes that share a scale, as values of x's type in registers. Limited by the memory that the
// weights are read from; with many rows by what reads x from shared memory.
#include "backends/cuda/kernels/few_tiles.h"
#include "backends/gpu/kernels/few_parts.h"
#include "backends/gpu/kernels/packed_piece.h"
#include "backends/gpu/kernels/widen_codes.h"

namespace rbee {
namespace gpu {

template <>
RB_DEVICE u32 fma_pair<bf16>(u32 a, u32 b, u32 c) {
  u32 out;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(c));
  return out;
}

template <int kOffset>
struct Widen<bf16, Codes::unsigned_bytes, kOffset> {
  RB_DEVICE static void run(u32 codes, u32 (&pairs)[2]) {
    const u32 less = round_pair<bf16>(-128.0f - kOffset, -128.0f - kOffset);
    const u32 one = 0x3f803f80u;
    pairs[0] = fma_pair<bf16>(__byte_perm(codes, 0x43434343u, 0x4140), one, less);
    pairs[1] = fma_pair<bf16>(__byte_perm(codes, 0x43434343u, 0x4342), one, less);
  }
};
// Seven bits fit: the eighth makes 256 of 128, which is what a negative number is less by.
template <int kOffset>
struct Widen<bf16, Codes::signed_bytes, kOffset> {
  RB_DEVICE static void run(u32 codes, u32 (&pairs)[2]) {
    const u32 minus_one = 0xbf80bf80u;
    const u32 first = __byte_perm(codes, 0x43434343u, 0x4140);
    const u32 second = __byte_perm(codes, 0x43434343u, 0x4342);
    pairs[0] = fma_pair<bf16>(first & 0xff80ff80u, minus_one, first & 0xff7fff7fu);
    pairs[1] = fma_pair<bf16>(second & 0xff80ff80u, minus_one, second & 0xff7fff7fu);
  }
};
template <int kOffset>
struct Widen<bf16, Codes::e4m3, kOffset> {
  RB_DEVICE static void run(u32 codes, u32 (&pairs)[2]) {
    const u32 by = 0x7b807b80u;  // 2^120
    pairs[0] = fma_pair<bf16>(shifted(__byte_perm(codes, 0, 0x1404)), by, kMinusZeroPair);
    pairs[1] = fma_pair<bf16>(shifted(__byte_perm(codes, 0, 0x3424)), by, kMinusZeroPair);
  }

 private:
  RB_DEVICE static u32 shifted(u32 codes) {
    return (codes & 0x80008000u) | ((codes >> 4) & 0x07f007f0u);
  }
};

// kN: 8 rows of x each.
template <class Block, class T, int kN>
class FewPacked {
 public:
  RB_DEVICE FewPacked(const FewRowsParams& params, const u8* ring)
      : p_(params),
        ring_(ring),
        lane_(static_cast<int>(thread_x()) % 32),
        warp_(static_cast<int>(thread_x()) / 32) {
    const MatvecPart part = few_part(p_, block_x());
    const i64 out0 = (block_x() - part.first_block) * static_cast<i64>(kFewOuts);
    const i64 left = part.outs - 1 - out0;
    const PackedLayout at = packed_layout<Block>(p_.in);
    last_row_ = left < kFewOuts - 1 ? static_cast<i32>(left) : kFewOuts - 1;
    tile_ = static_cast<const u8*>(part.weight) + out0 * at.row_bytes;
    row_bytes_ = static_cast<i32>(at.row_bytes);
    high_ = static_cast<i32>(at.high);
    scale_ = static_cast<i32>(at.scale);
    super_ = static_cast<i32>(at.super);
    const i32 units = (p_.in + Unit::kElements - 1) / Unit::kElements;
    const i32 split = static_cast<i32>(block_y());
    first_ = units * split / p_.splits;
    count_ = units * (split + 1) / p_.splits - first_;
    start_ = static_cast<i32>(block_x() * kApart % static_cast<u32>(count_));
  }

  RB_DEVICE void run() {
    const int ahead = p_.stages - 1;
    for (int i = 0; i < ahead && i < kEarly && i < count_; ++i) copy_weight(i, i);
    commit_copies();
    wait_for_previous_kernel();
    for (int i = 0; i < ahead; ++i) {
      if (i < count_) {
        copy_x(i, i);
        if (i >= kEarly) copy_weight(i, i);
      }
      commit_copies();  // empty groups too, so that counting them counts units
    }
    int stage = 0, filled = ahead;
    for (int i = 0; i < count_; ++i) {
      wait_copies_of(ahead - 1);
      barrier();  // this unit is there for all, and nobody reads the stage that is filled next
      if (i + ahead < count_) {
        copy_weight(i + ahead, filled);
        copy_x(i + ahead, filled);
      }
      commit_copies();
      multiply(unit(i), stage);
      stage = stage == ahead ? 0 : stage + 1;
      filled = filled == ahead ? 0 : filled + 1;
    }
    store();
  }

 private:
  using F = PackedFormat<Block>;
  using Piece = PackedPiece<Block>;
  using Unit = PackedUnit<Block>;
  static constexpr int kApart = 5;  // units between where neighbouring blocks begin
  // Units whose weights are asked for before the kernel in front has ended: more hold up its loads.
  static constexpr int kEarly = 3;
  static constexpr int kLaneRows = 2;  // that a lane reads of: lane / 4 + 8 r
  static constexpr int kPieces = 32 / Piece::kElements;
  static constexpr Codes kCodes = kCodesOf<Block>;
  static constexpr int kHalves = Block::kGroup == 16 ? 2 : 1;  // scales for 32 elements
  static constexpr bool kMinima = kHasMinima<Block>;
  static constexpr bool kWhole = Block::kElements % Unit::kElements == 0;  // rows are whole units
  static constexpr bool kShared = F::kScaleSpan > Unit::kElements;  // scale records, by two units
  // Of a stage.
  static constexpr int kHigh = kFewOuts * Unit::kLow;
  static constexpr int kScale = kHigh + kFewOuts * Unit::kHigh;
  static constexpr int kSuper = kScale + kFewOuts * Unit::kScale;
  static constexpr int kX = kSuper + kFewOuts * Unit::kSuper;
  static constexpr int kStage = kX + kN * 8 * kFewRowBytes;

  RB_DEVICE i32 unit(i32 i) const {
    const i32 within = start_ + i;
    return first_ + (within < count_ ? within : within - count_);
  }

  // Queue the copies of the block's i-th unit.
  RB_DEVICE void copy_weight(i32 i, int stage) const {
    const i32 unit = this->unit(i);
    const u32 to = shared_address(ring_ + stage * kStage);
    const i32 left = p_.in - unit * Unit::kElements;
    copy_plane<Unit::kLow, 16>(to, tile_ + unit * Unit::kLow, row_bytes_, last_row_,
                               kWhole ? Unit::kLow / 16 : left * F::kLow / 128);
    if constexpr (Unit::kHigh > 0) {
      copy_plane<Unit::kHigh, 16>(to + kHigh, tile_ + high_ + unit * Unit::kHigh, row_bytes_,
                                  last_row_, Unit::kHigh / 16);
    }
    constexpr int kPiece = Unit::kScale == 12 ? 4 : Unit::kScale;
    copy_plane<Unit::kScale, kPiece>(to + kScale,
                                     tile_ + scale_ + (kShared ? unit / 2 : unit) * Unit::kScale,
                                     row_bytes_, last_row_, Unit::kScale / kPiece);
    if constexpr (Unit::kSuper > 0) {
      copy_plane<4, 4>(to + kSuper, tile_ + super_ + (unit / 2 * F::kSuperBytes & ~3), row_bytes_,
                       last_row_, 1);
    }
  }

  // x's rows in two halves of eight chunks each, swizzled within: the lanes of a quarter of a warp
  // read chunks e and 4 + e of both halves of two rows at once.
  RB_DEVICE void copy_x(i32 i, int stage) const {
    const i32 unit = this->unit(i);
    const u32 to = shared_address(ring_ + stage * kStage + kX);
    const i32 left = p_.in - unit * Unit::kElements;
    constexpr int kChunks = 16;
    constexpr int kCopies = kN * 8 * kChunks;
    const T* x = static_cast<const T*>(p_.x);
#pragma unroll
    for (int k = 0; k < (kCopies + kFewThreads - 1) / kFewThreads; ++k) {
      const int at = k * kFewThreads + static_cast<int>(thread_x());
      const int row = at / kChunks, chunk = at % kChunks;
      if (row >= p_.rows) return;  // what is there instead comes to no result
      const bool wanted = kWhole || chunk * 8 < left;
      const int place = (chunk & 8) + ((chunk & 7) ^ x_swizzle(row, chunk / 8));
      const u32 from = static_cast<u32>(row) * static_cast<u32>(p_.in) +
                       static_cast<u32>(unit * Unit::kElements + chunk * 8);
      copy_async16(to + row * kFewRowBytes + place * 16, wanted ? x + from : x, wanted ? 16 : 0);
    }
  }
  RB_DEVICE static int x_swizzle(int row, int half) { return half | ((row & 1) << 1); }

  RB_DEVICE void multiply(i32 unit, int stage) {
    const SharedBytes from{ring_ + stage * kStage};
    const int quarter = lane_ % 4;  // a group of 32 of the unit
    // Scales of 32 elements were copied from the unit's first on.
    const int group = kShared ? unit % 2 * 4 + quarter : quarter;
    const bool live = kWhole || unit * Unit::kElements + quarter * 32 < p_.in;
    u32 codes[kLaneRows][8];
    u32 by[kLaneRows][kHalves], plus[kLaneRows][kHalves];
#pragma unroll
    for (int r = 0; r < kLaneRows; ++r) {
      const int row = warp_ * 16 + r * 8 + lane_ / 4;
#pragma unroll
      for (int i = 0; i < kPieces; ++i) {
        Piece piece;
        piece.load(from + row * Unit::kLow, from + (kHigh + row * Unit::kHigh),
                   kPieces == 1 ? quarter : few_chunk<Unit::kLow>(row, 2 * quarter + i));
        u32 some[8 / kPieces];
        piece.unpack(some);
        for (int w = 0; w < 8 / kPieces; ++w) codes[r][i * (8 / kPieces) + w] = some[w];
      }
      StoredScale<Block> stored;
      stored.load(from + (kScale + row * Unit::kScale),
                  from + (kSuper + row * Unit::kSuper + (unit / 2 * F::kSuperBytes & 3)), group);
      const PackedScale scale = stored.value(group);
#pragma unroll
      for (int half = 0; half < kHalves; ++half) {
        by[r][half] = live ? round_pair<T>(scale.d[half], scale.d[half]) : 0;
        plus[r][half] =
            kMinima && live ? round_pair<T>(scale.m[half], scale.m[half]) : kMinusZeroPair;
      }
    }
    // Where the lane's chunk 0 of its half of the first eight rows lies, and what swizzles.
    const int x_row = lane_ / 4, half = quarter / 2;
    const u8* x = from.data + (kX + x_row * kFewRowBytes + half * 128 + quarter % 2 * 64);
    const int swizzle = x_swizzle(x_row, half);
#pragma unroll
    for (int eighth = 0; eighth < 4; ++eighth) {  // 8 of the 32
      u32 w[2][4];
#pragma unroll
      for (int r = 0; r < kLaneRows; ++r) {
        const int h = eighth / 2 % kHalves;
#pragma unroll
        for (int word = 0; word < 2; ++word) {
          u32 pairs[2];
          Widen<T, kCodes, F::kOffset>::run(codes[r][2 * eighth + word], pairs);
          w[word][r] = fma_pair<T>(pairs[0], by[r][h], plus[r][h]);
          w[word][r + 2] = fma_pair<T>(pairs[1], by[r][h], plus[r][h]);
        }
      }
      const u8* chunk = x + (eighth ^ swizzle) * 16;
#pragma unroll
      for (int n = 0; n < kN; ++n) {
        const uint4 values = *reinterpret_cast<const uint4*>(chunk + n * 8 * kFewRowBytes);
        multiply_add<T>(sums_[n], w[0], values.x, values.y);
        multiply_add<T>(sums_[n], w[1], values.z, values.w);
      }
    }
  }

  RB_DEVICE void store() const {
    const MatvecPart part = few_part(p_, block_x());
    const i64 out0 = (block_x() - part.first_block) * static_cast<i64>(kFewOuts);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int within = warp_ * 16 + i * 8 + lane_ / 4;
      const i64 out = out0 + within;
      if (out >= part.outs) return;
      const float add = p_.splits == 1 && part.bias != nullptr ? bias(part, out) : 0.0f;
      const i64 tile_rows =
          (static_cast<i64>(block_x()) * p_.splits + static_cast<i64>(block_y())) * p_.rows;
#pragma unroll
      for (int n = 0; n < kN; ++n) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const int row = n * 8 + lane_ % 4 * 2 + j;
          if (row >= p_.rows) continue;
          const float sum = sums_[n][2 * i + j];
          if (p_.splits == 1 && p_.floats != 0) {
            static_cast<float*>(part.y)[row * part.outs + out] = sum + add;
          } else if (p_.splits == 1) {
            static_cast<T*>(part.y)[row * part.outs + out] = store_value<T>(sum + add);
          } else {
            p_.partials[(tile_rows + row) * kFewOuts + within] = sum;
          }
        }
      }
    }
  }

  RB_DEVICE float bias(const MatvecPart& part, i64 out) const {
    if (p_.floats != 0) return static_cast<const float*>(part.bias)[out];
    return load_value(static_cast<const T*>(part.bias)[out]);
  }

  const FewRowsParams& p_;
  const u8* ring_;  // of the block, in shared memory
  int lane_, warp_;
  const u8* tile_;  // its first row
  i32 last_row_;
  i32 row_bytes_, high_, scale_, super_;  // PackedLayout
  i32 first_, count_, start_;             // units of the block
  float sums_[kN][4] = {};
};

template <class Block, class T, int kN>
RB_DEVICE void few_packed(const FewRowsParams& p) {
  RB_DYNAMIC_SHARED(ring);
  FewPacked<Block, T, kN>(p, ring).run();
}

#define RB_PACKED_MMA(dtype, Block, x, T, n)                                               \
  RB_KERNEL_AHEAD(matvec_mma_##x##_##dtype##_n##n, kFewThreads, kFewBlocks, FewRowsParams, \
                  (few_packed<Block, T, n>(p)))
#define RB_MATVEC_MMA_PACKED(dtype, Block)   \
  RB_PACKED_MMA(dtype, Block, f16, f16, 2)   \
  RB_PACKED_MMA(dtype, Block, f16, f16, 4)   \
  RB_PACKED_MMA(dtype, Block, f16, f16, 8)   \
  RB_PACKED_MMA(dtype, Block, bf16, bf16, 2) \
  RB_PACKED_MMA(dtype, Block, bf16, bf16, 4) \
  RB_PACKED_MMA(dtype, Block, bf16, bf16, 8)

}  // namespace gpu
}  // namespace rbee
