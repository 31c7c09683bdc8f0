#pragma once
// Rows of a tile of packed weights (packed_weight.h), unit after unit in shared memory, and the
// registers that a lane passes to tensor cores: 32 codes of each of two rows that share a scale, as
// values of x's type. sm_80 and later (PTX ISA: cp.async).
#include "backends/gpu/kernels/few_parts.h"
#include "backends/gpu/kernels/packed_points.h"
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
// Seven bits fit: the eighth turns 128 into 256, the amount to subtract for a negative number.
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

// Queues the copy of kBytes (4, 8 or 16), zeros where `wanted` is false. Both addresses are
// multiples of kBytes.
template <int kBytes>
RB_DEVICE void copy_async(u32 to, const u8* from, bool wanted) {
  if constexpr (kBytes == 16) {
    copy_async16(to, from, wanted ? 16 : 0);
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to),
                 "l"(__cvta_generic_to_global(from)), "n"(kBytes), "r"(wanted ? kBytes : 0)
                 : "memory");
  }
}

// The place of 16 bytes of a tile's staged row, in 16 bytes from its first. Rows of 128 bytes are
// swizzled: lanes read two rows' neighbouring chunks at once.
template <int kRowBytes>
RB_DEVICE int packed_chunk(int row, int chunk) {
  return kRowBytes == 128 ? chunk ^ (row & 1) : chunk;
}

// The tile and the threads that copy it.
template <int kTileOuts, int kCopyingThreads>
struct Copying {
  static constexpr int kOuts = kTileOuts, kThreads = kCopyingThreads;
  int thread;  // of these
};

// Queues the copies of kRowBytes of each of a tile's rows up to `last_row`, which lie row_bytes
// apart, kPiece at a time; zeros for pieces from `pieces` on. Rows past the last keep what a
// stage held: no result uses them. A thread's rows are evenly spaced, so that a copy takes few
// instructions, since there are many copies.
template <int kRowBytes, int kPiece, int kOuts, int kThreads>
RB_DEVICE void copy_plane(Copying<kOuts, kThreads> by, u32 to, const u8* from, i32 row_bytes,
                          i32 last_row, i32 pieces) {
  constexpr int kPieces = kRowBytes / kPiece;
  constexpr int kLanes = (kPieces & (kPieces - 1)) == 0 ? kPieces : 1;  // that share a row
  constexpr int kEach = kPieces / kLanes;
  constexpr int kRows = kThreads / kLanes;  // at a time
  static_assert(kThreads % kLanes == 0 && (kRowBytes != 128 || kRows % 2 == 0));
  const int first = by.thread / kLanes, piece = by.thread % kLanes;
  const int place = kPiece == 16 ? packed_chunk<kRowBytes>(first, piece) : piece;
  const u8* source = from + static_cast<i64>(first) * row_bytes + piece * kPiece;
  to += static_cast<u32>(first * kRowBytes + place * kPiece);
#pragma unroll
  for (int i = 0; i < (kOuts + kRows - 1) / kRows; ++i) {
    if (first + i * kRows <= last_row) {
#pragma unroll
      for (int e = 0; e < kEach; ++e) {
        copy_async<kPiece>(to + static_cast<u32>(i * kRows * kRowBytes + e * kPiece),
                           source + e * kPiece, piece + e < pieces);
      }
    }
    source += kRows * row_bytes;
  }
}

// The places of a tile's rows of a weight, and of the parts of a staged unit.
template <class Block, int kOuts>
class PackedTile {
 public:
  using F = PackedFormat<Block>;
  using Unit = PackedUnit<Block>;
  static constexpr bool kWhole = Block::kElements % Unit::kElements == 0;  // rows are whole units
  static constexpr bool kShared = F::kScaleSpan > Unit::kElements;  // scale records, by two units
  // Of a stage.
  static constexpr int kHigh = kOuts * Unit::kLow;
  static constexpr int kScale = kHigh + kOuts * Unit::kHigh;
  static constexpr int kSuper = kScale + kOuts * Unit::kScale;
  static constexpr int kBytes = kSuper + kOuts * Unit::kSuper;

  PackedTile() = default;
  RB_DEVICE PackedTile(const MatvecPart& part, i64 out0, i32 in) : in_(in) {
    const i64 left = part.outs - 1 - out0;
    const PackedLayout at = packed_layout<Block>(in);
    last_row_ = left < kOuts - 1 ? static_cast<i32>(left) : kOuts - 1;
    rows_ = static_cast<const u8*>(part.weight) + out0 * at.row_bytes;
    row_bytes_ = static_cast<i32>(at.row_bytes);
    high_ = static_cast<i32>(at.high);
    scale_ = static_cast<i32>(at.scale);
    super_ = static_cast<i32>(at.super);
  }

  // Queues the copies of a unit.
  template <int kThreads>
  RB_DEVICE void copy(Copying<kOuts, kThreads> by, i32 unit, u32 to) const {
    const i32 left = in_ - unit * Unit::kElements;
    if constexpr (Unit::kLow > 0) {
      copy_plane<Unit::kLow, 16>(by, to, rows_ + unit * Unit::kLow, row_bytes_, last_row_,
                                 kWhole ? Unit::kLow / 16 : left * F::kLow / 128);
    }
    if constexpr (Unit::kHigh > 0) {
      copy_plane<Unit::kHigh, 16>(by, to + kHigh, rows_ + high_ + unit * Unit::kHigh, row_bytes_,
                                  last_row_, Unit::kHigh / 16);
    }
    constexpr int kPiece = Unit::kScale == 12 || Unit::kScale == 52 ? 4 : Unit::kScale;
    const i32 scale = kShared ? unit / 2 * F::kScaleBytes & ~3 : unit * Unit::kScale;
    copy_plane<Unit::kScale, kPiece>(by, to + kScale, rows_ + scale_ + scale, row_bytes_, last_row_,
                                     Unit::kScale / kPiece);
    if constexpr (Unit::kSuper > 0) {
      copy_plane<Unit::kSuper, Unit::kSuper>(by, to + kSuper,
                                             rows_ + super_ + (unit / 2 * F::kSuperBytes & ~3),
                                             row_bytes_, last_row_, 1);
    }
  }

 private:
  const u8* rows_;
  i32 in_, last_row_;
  i32 row_bytes_, high_, scale_, super_;  // PackedLayout
};

// A lane's part of a staged unit: of rows `row` and row + 8, the group of 32 elements at the lane's
// place in its quarter of a warp. Step s of the products of 16 elements uses its elements
// 4 s + 0..3: two in place 2 q of the 16, two in place 8 + 2 q.
template <class Block, class T, int kOuts>
class PackedLane {
 public:
  using Tile = PackedTile<Block, kOuts>;
  static constexpr int kSteps = 8;

  RB_DEVICE PackedLane(i32 in, int row)
      : in_(in), row_(row), quarter_(static_cast<int>(thread_x()) % 4) {}

  RB_DEVICE void load(SharedBytes from, i32 unit) {
    // Scales of 32 elements are copied from the unit's first one on.
    const int group = Tile::kShared ? unit % 2 * 4 + quarter_ : quarter_;
    // Pieces of points count like scales.
    const int before = F::kCodeBook == CodeBook::points ? group - quarter_ : 0;
    const bool live = Tile::kWhole || unit * Unit::kElements + quarter_ * 32 < in_;
#pragma unroll
    for (int r = 0; r < kLaneRows; ++r) {
      const int row = row_ + r * 8;
      const RowPlanes<SharedBytes> planes{
          from + (row * Unit::kLow - before * (Unit::kLow / 4)),
          from + (Tile::kHigh + row * Unit::kHigh - before * (Unit::kHigh / 4)),
          from + (Tile::kScale + row * Unit::kScale + (unit / 2 * F::kScaleBytes & kWithin)),
          from + (Tile::kSuper + row * Unit::kSuper + (unit / 2 * F::kSuperBytes & 3)),
      };
#pragma unroll
      for (int i = 0; i < kPieces; ++i) {
        Piece piece;
        piece.load(planes, kPieces == 1 ? before + quarter_
                                        : packed_chunk<Unit::kLow>(row, 2 * quarter_ + i));
        u32 some[8 / kPieces];
        piece.unpack(some);
        for (int w = 0; w < 8 / kPieces; ++w) codes_[r][i * (8 / kPieces) + w] = some[w];
      }
      StoredScale<Block> stored;
      stored.load(planes, group);
      const PackedScale scale = stored.value(unit % 2 * 4 + quarter_);
#pragma unroll
      for (int half = 0; half < kHalves; ++half) {
        by_[r][half] = live ? round_pair<T>(scale.d[half], scale.d[half]) : 0;
        plus_[r][half] =
            kMinima && live ? round_pair<T>(scale.m[half], scale.m[half]) : kMinusZeroPair;
      }
    }
  }

  // The first operand of m16n8k16, and of a warp's rows of wgmma's m64k16.
  RB_DEVICE void step(int step, u32 (&a)[4]) const {
    const int half = step / 4 % kHalves;
#pragma unroll
    for (int r = 0; r < kLaneRows; ++r) {
      u32 pairs[2];
      Widen<T, kCodesOf<Block>, F::kOffset>::run(codes_[r][step], pairs);
      a[r] = fma_pair<T>(pairs[0], by_[r][half], plus_[r][half]);
      a[r + 2] = fma_pair<T>(pairs[1], by_[r][half], plus_[r][half]);
    }
  }

 private:
  using F = PackedFormat<Block>;
  using Piece = PackedPiece<Block>;
  using Unit = PackedUnit<Block>;
  static constexpr int kLaneRows = 2;
  static constexpr int kPieces = 32 / Piece::kElements;
  static constexpr int kHalves = Block::kGroup == 16 ? 2 : 1;  // scales for 32 elements
  static constexpr bool kMinima = kHasMinima<Block>;
  // Of four copied bytes, the unit's own.
  static constexpr int kWithin = Tile::kShared ? 3 : 0;

  const i32 in_;
  const int row_, quarter_;
  u32 codes_[kLaneRows][kSteps];
  u32 by_[kLaneRows][kHalves], plus_[kLaneRows][kHalves];
};

}  // namespace gpu
}  // namespace rbee
