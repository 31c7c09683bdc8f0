#pragma once
// matvec_one_tma.h on packed weights of integer codes, by integer products (PTX ISA 8.x, section
// 9.7.14.5.10). x is rounded to bytes.
//
// mma.m16n8k32 with g = lane / 4 and t = lane % 4: of a stage's 16 rows a lane holds rows g and
// g + 8, and of eight neighbouring pieces it holds pieces t and t + 4. Each product takes eight
// codes of one of the two, and x only if column g is the lane's own piece. So column c of the sums
// is piece c, and each piece has sums of its own, which its scale multiplies.
#include "backends/cuda/kernels/matvec_one_tma.h"
#include "backends/gpu/kernels/packed_points.h"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

namespace rbee {
namespace gpu {

// sums += 16 x 32 codes, signed or unsigned bytes, times 32 x 8 signed bytes.
template <bool kSigned>
RB_DEVICE void multiply_bytes(i32 (&sums)[4], const u32 (&codes)[4], u32 x0, u32 x1) {
  if (kSigned) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(codes[0]), "r"(codes[1]), "r"(codes[2]), "r"(codes[3]), "r"(x0), "r"(x1));
  } else {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(codes[0]), "r"(codes[1]), "r"(codes[2]), "r"(codes[3]), "r"(x0), "r"(x1));
  }
}

// A format's stages, and a lane's part of them.
template <class Block>
struct IntegerStage : StagePlanes<PackedStage<Block>> {
  using F = PackedFormat<Block>;
  static constexpr int kElements = PackedPiece<Block>::kElements;
  static constexpr int kWords = kElements / 4;
  static constexpr bool kHalves = Block::kGroup == 16;  // two scales for 32 elements
  static constexpr bool kMinima = F::kOffset == 0 && F::kLow < 8 && F::kCodeBook == CodeBook::none;
  static constexpr bool kNibbles = F::kLow == 4 && F::kHigh == 0 && F::kCodeBook == CodeBook::none;
  static constexpr int kSums = kHalves || kNibbles ? 2 : 1;  // of a piece: halves, kinds of nibbles
  // Codes of four bits that name values of a table; each half of them has one sign.
  static constexpr bool kLooked = F::kCodeBook == CodeBook::iq4 || F::kCodeBook == CodeBook::e2m1;
  static constexpr int kGroups = kElements == 32 ? 2 : 1;  // of 32, that a lane scales of a row
};

// A multiplying warp's part: 16 rows of a stage, and eight of its pieces.
template <class Block>
class OneIntegers {
 public:
  using Stage = PackedStage<Block>;
  using Layout = IntegerStage<Block>;
  static constexpr int kBookBytes = OneBook<Block>::kBytes;
  using F = PackedFormat<Block>;
  using Piece = PackedPiece<Block>;

  // x: from stage_x().
  RB_DEVICE OneIntegers(const TensorOneParams& p, const u8* x)
      : x_(x),
        groups_(reinterpret_cast<const OneGroup*>(x + inputs(p))),
        g_(static_cast<int>(thread_x()) % 32 / 4),
        t_(static_cast<int>(thread_x()) % 4),
        row_(static_cast<int>(thread_x()) / 32 % 2 * 16 + g_),
        octet_(static_cast<int>(thread_x()) / 64) {
    const bool mine = g_ % 4 == t_;
    const int piece = octet_ * 8 + g_ / 4 * 4 + t_;
    x_first_ = mine ? piece * Layout::kElements : zeros_at(p);
    x_step_ = mine ? Stage::kElements : 0;
  }

  RB_DEVICE static i32 inputs(const TensorOneParams& p) { return p.steps * Stage::kElements; }
  // Zeros for lanes without x, after x and its groups.
  RB_DEVICE static i32 zeros_at(const TensorOneParams& p) {
    return inputs(p) + inputs(p) / 32 * static_cast<i32>(sizeof(OneGroup));
  }

  // Rounds x to bytes in the order of the elements; for nibbles in the order of a word's nibbles
  // (low ones in pairs, then high ones; or the two nibbles of a byte side by side). Its groups come
  // after them.
  template <class T>
  RB_DEVICE static float stage_x(const TensorOneParams& p, u8* to) {
    const i32 elements = inputs(p);
    OneBookOfLane<Block>::open();  // leave_squares() has a barrier
    OneInput<T> x(p.one);
    wait_for_x(p);
    const float squares = x.each(elements / kXRun, [&](i32 run, const float(&values)[kXRun]) {
      OneGroup group;
      const RoundedRun rounded = round_run<32>(values, group);
      if (run >= elements / kXRun) return;
      if (Layout::kNibbles) {
        u32* words = reinterpret_cast<u32*>(to) + run / 2 * 4 + run % 2;
        words[0] = rounded.words[0];
        words[2] = rounded.words[1];
      } else if (Layout::kLooked) {
        reinterpret_cast<RoundedRun*>(to)[run] = {
            {prmt(rounded.words[0], rounded.words[1], 0x5140u),
             prmt(rounded.words[0], rounded.words[1], 0x7362u)}};
      } else {
        reinterpret_cast<RoundedRun*>(to)[run] = rounded;
      }
      if (run % 4 == 0) reinterpret_cast<OneGroup*>(to + elements)[run / 4] = group;
    });
    if (thread_x() < 8) reinterpret_cast<u32*>(to + zeros_at(p))[thread_x()] = 0;
    return squares;
  }

  RB_DEVICE void begin() {
    x_at_ = x_first_;
    sums_[0] = sums_[1] = 0;
  }

  // Adds a stage; calls released() once it no longer reads the stage.
  template <class Released>
  RB_DEVICE void add(const u8* stage, i32 step, const Released& released) {
    Piece pieces[2][2];  // of the two products, of rows g and g + 8
#pragma unroll
    for (int product = 0; product < 2; ++product) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        // Rows of odd g take the pieces in the other order, so that lanes read other banks.
        const int piece = octet_ * 8 + (product ^ (g_ & 1)) * 4 + t_;
        pieces[product][r].load(planes_of_row(stage, step, row_ + 8 * r), piece);
      }
    }
    const int group = octet_ * (4 * Layout::kGroups) + t_ * Layout::kGroups;
    Scales scales;
    load_scales(stage, step, group, scales);
    u32 x[Layout::kWords];
#pragma unroll
    for (int i = 0; i < Layout::kWords / 4; ++i) {
      const Bytes16 some = reinterpret_cast<const Bytes16*>(x_ + x_at_)[i];
#pragma unroll
      for (int w = 0; w < 4; ++w) x[4 * i + w] = some.words[w];
    }
    x_at_ += x_step_;
    const OneGroup* of_x = groups_ + step * (Stage::kElements / 32) + group;
    OneGroup x_groups[Layout::kGroups];
#pragma unroll
    for (int e = 0; e < Layout::kGroups; ++e) x_groups[e] = of_x[e];
    i32 dots[Layout::kSums][4];
    const bool second = (t_ >= 2) != (g_ % 2 != 0);  // which product has this lane's columns
#pragma unroll
    for (int product = 0; product < 2; ++product) {
      i32 sums[Layout::kSums][4] = {};
      multiply(pieces[product], x, sums, book_);
#pragma unroll
      for (int s = 0; s < Layout::kSums; ++s) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          dots[s][i] = product == 0 || second ? sums[s][i] : dots[s][i];
        }
      }
    }
    released();
#pragma unroll
    for (int r = 0; r < 2; ++r) add_scaled(scales[r], dots, r, x_groups, group);
  }

  // Calls put(octet, row, sum) for this lane's rows of the stage once all stages of a tile are
  // added, and then done(), by kOneRowLanes lanes of a warp.
  template <class Put, class Done>
  RB_DEVICE void end(const Put& put, const Done& done) {
    float sums[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) sums[r] = wave_sum<32, 4>(sums_[r]);
    if (t_ != 0) return;
#pragma unroll
    for (int r = 0; r < 2; ++r) put(octet_, row_ + 8 * r, sums[r]);
    done();
  }

 private:
  using Scales = StoredScale<Block>[2][Layout::kGroups];  // of rows g and g + 8

  RB_DEVICE static RowPlanes<SharedBytes> planes_of_row(const u8* stage, i32 step, int row) {
    return {
        {stage + row * Stage::kLow},
        {stage + Layout::kHigh + row * Stage::kHigh},
        {stage + Layout::kScale + row * Layout::kScaleRow + (step * Stage::kScale & 15)},
        {stage + Layout::kSuper + row * Layout::kSuperRow + (step * Stage::kSuper & 15)},
    };
  }
  RB_DEVICE void load_scales(const u8* stage, i32 step, int group, Scales& scales) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const RowPlanes<SharedBytes> planes = planes_of_row(stage, step, row_ + 8 * r);
#pragma unroll
      for (int e = 0; e < Layout::kGroups; ++e) scales[r][e].load(planes, group + e);
    }
  }

  // Adds to the sum of row g + 8 r.
  RB_DEVICE void add_scaled(const StoredScale<Block> (&scales)[Layout::kGroups],
                            const i32 (&dots)[Layout::kSums][4], int r,
                            const OneGroup (&x)[Layout::kGroups], int group) {
    if constexpr (Layout::kNibbles) {
      const i32 both[2] = {dots[0][2 * r] + (dots[1][2 * r] >> 4),
                           dots[0][2 * r + 1] + (dots[1][2 * r + 1] >> 4)};
      scale_nibbles(scales, both, x, group, sums_[r]);
    } else {
#pragma unroll
      for (int e = 0; e < Layout::kGroups; ++e) {
        const PackedScale scale = scales[e].value((group + e) & 7);
#pragma unroll
        for (int half = 0; half < (Layout::kHalves ? 2 : 1); ++half) {
          // In codes of 8 bits two pieces are a group.
          const i32 dot =
              Layout::kGroups == 1 ? dots[0][2 * r] + dots[0][2 * r + 1] : dots[half][2 * r + e];
          sums_[r] = scaled(scale, half, dot, x[e], sums_[r]);
        }
      }
    }
  }

  // Sums of pieces t of rows g and g + 8; words come in pairs, of neighbours along the piece.
  RB_DEVICE static void multiply(const Piece (&rows)[2], const u32 (&x)[Layout::kWords],
                                 i32 (&sums)[Layout::kSums][4], const OneBookOfLane<Block>& book) {
    if constexpr (Layout::kNibbles) {
      // High nibbles stay in place, as unsigned bytes 16 times as large; x has the same order.
#pragma unroll
      for (int w = 0; w < 4; w += 2) {
        const u32 words[4] = {rows[0].low[w], rows[1].low[w], rows[0].low[w + 1],
                              rows[1].low[w + 1]};
        u32 low[4], high[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          low[i] = words[i] & 0x0f0f0f0fu;
          high[i] = words[i] & 0xf0f0f0f0u;
        }
        multiply_bytes<true>(sums[0], low, x[2 * w], x[2 * w + 1]);
        multiply_bytes<false>(sums[1], high, x[2 * w + 2], x[2 * w + 3]);
      }
    } else if constexpr (Layout::kLooked) {
      multiply_looked(rows, x, sums);
    } else {
      u32 codes[2][Layout::kWords];
      rows[0].unpack(codes[0], book);
      rows[1].unpack(codes[1], book);
#pragma unroll
      for (int w = 0; w < Layout::kWords; w += 2) {
        const u32 four[4] = {codes[0][w], codes[1][w], codes[0][w + 1], codes[1][w + 1]};
        multiply_bytes<true>(sums[Layout::kHalves ? w / 4 : 0], four, x[w], x[w + 1]);
      }
    }
  }

  // prmt gives a zero, the sign of its table's bytes, if a code's highest bit is set. So each half
  // of the table has a lookup of its own, and the sums are their difference.
  RB_DEVICE static void multiply_looked(const Piece (&rows)[2], const u32 (&x)[Layout::kWords],
                                        i32 (&sums)[Layout::kSums][4]) {
    constexpr CodeBook kBook = F::kCodeBook;
    constexpr u32 kTable[4] = {book_sizes<kBook>(0), book_sizes<kBook>(1), book_sizes<kBook>(2),
                               book_sizes<kBook>(3)};
    i32 lower[Layout::kSums][4] = {}, upper[Layout::kSums][4] = {};
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const int half = Layout::kHalves ? w / 2 : 0;
      u32 low[4], high[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const u32 codes = rows[i % 2].low[w], others = codes ^ 0x88888888u;
        const int shift = 16 * (i / 2);
        low[i] = prmt(kTable[0], kTable[1], codes >> shift);
        high[i] = prmt(kTable[2], kTable[3], others >> shift);
      }
      multiply_bytes<true>(lower[half], low, x[2 * w], x[2 * w + 1]);
      multiply_bytes<true>(upper[half], high, x[2 * w], x[2 * w + 1]);
    }
#pragma unroll
    for (int s = 0; s < Layout::kSums; ++s) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const i32 difference = upper[s][i] - lower[s][i];
        sums[s][i] = kBook == CodeBook::iq4 ? difference : -difference;
      }
    }
  }

  RB_DEVICE static float scaled(const PackedScale& scale, int half, i32 dot, const OneGroup& x,
                                float sum) {
    constexpr float kOffset = F::kOffset;
    const float x_sum = Layout::kHalves ? x.halves[half] : x.total;
    float product = x.d * static_cast<float>(dot);
    if (F::kOffset != 0) product = fma(-kOffset, x_sum, product);
    sum = fma(scale.d[half], product, sum);
    if (Layout::kMinima) sum = fma(scale.m[half], x_sum, sum);
    return sum;
  }

  // The sums of two neighbouring groups; the first has an even number.
  RB_DEVICE static void scale_nibbles(const StoredScale<Block> (&scales)[2], const i32 (&dots)[2],
                                      const OneGroup (&x)[2], int group, float& sum) {
    if constexpr (F::kScaleBytes == 16) {
      // Both pairs of 6 bits of one record (pair_of_6) at once, and as integers.
      const packed::KScale& record = scales[0];
      const int at = group & 7;
      const u32 low = (at < 4 ? record.low : record.high) >> (8 * (at & 2));
      const u32 tops = record.tops >> (4 * at);
      const i32 d[2] = {static_cast<i32>(low & 63u), static_cast<i32>(low >> 8 & 63u)};
      const u32 m[2] = {(low >> 6 & 3u) | (tops << 2 & 60u), (low >> 14 & 3u) | (tops >> 2 & 60u)};
      const float products = fma(x[1].d, static_cast<float>(dots[1] * d[1]),
                                 x[0].d * static_cast<float>(dots[0] * d[0]));
      const float minima =
          fma(x[1].total, static_cast<float>(m[1]), x[0].total * static_cast<float>(m[0]));
      sum = fma(packed::low_half(record.halves), products, sum);
      sum = fma(-packed::high_half(record.halves), minima, sum);
    } else {
#pragma unroll
      for (int e = 0; e < 2; ++e)
        sum = scaled(scales[e].value((group + e) & 7), 0, dots[e], x[e], sum);
    }
  }

  const OneBookOfLane<Block> book_;
  const u8* x_;
  const OneGroup* groups_;
  const int g_, t_, row_, octet_;
  i32 x_first_, x_step_, x_at_ = 0;
  float sums_[2];
};

}  // namespace gpu
}  // namespace rbee

#endif
