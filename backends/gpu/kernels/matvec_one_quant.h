#pragma once
// matvec_one.h for packed block-quantised weights (packed_weight.h): x as int8 by groups of 32,
// integer dot products, e4m3 codes as f16. A lane takes 32 codes of a row at a time, 16 of 8-bit
// formats.
#include "backends/gpu/instructions.h"
#include "backends/gpu/kernels/matvec_one.h"
#include "backends/gpu/kernels/matvec_one_x.h"
#include "backends/gpu/kernels/packed_points.h"
#include "backends/shared/packed_weight.h"

namespace rbee {
namespace gpu {

template <class Block, int kWave>
class QuantOne {
 public:
  using F = PackedFormat<Block>;
  using Piece = PackedPiece<Block>;
  static constexpr int kElements = Piece::kElements;
  static constexpr int kTrip = kPackedTrip;
  static constexpr int kThreads = kPackedOneThreads;
  static constexpr bool kRing = kAsyncCopies;
  using Trip = PackedTrip<Block>;
  using Result = AnyResult;
  static constexpr int kTripBytes = Trip::kBytes;
  static constexpr int kSteps = kTrip / kWave;
  static constexpr int kWords = kElements / 4;
  static constexpr int kPerGroup = 32 / kElements;
  static constexpr bool kHalves = Block::kGroup == 16;  // two scales for 32 elements
  static constexpr bool kMinima = F::kOffset == 0 && F::kLow < 8 && F::kCodeBook == CodeBook::none;
  static constexpr bool kNibbles = F::kLow == 4 && F::kHigh == 0 && F::kCodeBook == CodeBook::none;

  struct Fetched {
    Piece pieces[kSteps];
    StoredScale<Block> scales[kSteps];
  };

  RB_DEVICE explicit QuantOne(const MatvecOneParams& p) : p_(p) {}

  RB_DEVICE i32 trips() const { return trips_of(p_, kTrip); }
  // The quants, and 16 bytes (OneGroup) for 32 of them.
  RB_DEVICE i32 staged_bytes() const { return trips() * kTrip * (kElements + kElements / 2); }

  template <class Ask>
  RB_DEVICE float stage(const Ask& ask) const {
    const i32 runs = trips() * kTrip * kElements / kXRun;
    XRuns<kWave, kThreads> x(p_, runs);
#pragma unroll 1
    for (int turn = 0; turn < 2; ++turn) {
      if (turn == 1) {
        if (kRing) wait_for_previous_kernel();
        x.ask();
      }
      ask(turn);
    }
    const float squares = x.each([&](i32 run, const float(&values)[kXRun]) {
      OneGroup group;
      const RoundedRun rounded = round_run<kWave>(values, group);
      if (run >= runs) return;
      reinterpret_cast<RoundedRun*>(staged())[2 * slot_of(run / 2) + run % 2] = rounded;
      if (run % 4 == 0) groups()[run / 4] = group;
    });
    using Squares = NormSquares<kWave, kThreads>;
    Squares::leave(p_, squares);
    barrier();
    return Squares::factor(p_);
  }

  RB_DEVICE void fetch(Fetched& to, const u8* row, i32 trip, int lane) const {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const i32 at = trip * kTrip + step * kWave + lane;
      const i32 piece = at < p_.pieces ? at : p_.pieces - 1;
      const RowPlanes<const u8*> planes{row, row + p_.high, row + p_.scale, row + p_.super};
      to.pieces[step].load(planes, piece);
      to.scales[step].load(planes, piece / kPerGroup);
    }
  }

  RB_DEVICE void copy(i32 to, const u8* row, i32 trip, int lane) const {
    if ((trip + 1) * kTrip <= p_.pieces) return copy_planes<true>(to, row, trip, lane);
    copy_planes<false>(to, row, trip, lane);
  }
  RB_DEVICE void take(Fetched& to, i32 from, int lane) const {
    const SharedBytes low{staged() + from};
    const SharedBytes high = low + Trip::kLow, scale = high + Trip::kHigh;
    const RowPlanes<SharedBytes> planes{low, high, scale, scale + Trip::kScale};
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int piece = step * kWave + lane;
      to.pieces[step].load(planes, piece);
      to.scales[step].load(planes, piece / kPerGroup);
    }
  }

  RB_DEVICE void multiply(const Fetched (&rows)[kMatvecOuts], i32 trip, int lane,
                          float (&sums)[kMatvecOuts]) const {
    const auto* quants = reinterpret_cast<const Bytes16*>(staged()) + trip * kTrip * kSlots + lane;
    const OneGroup* groups = this->groups() + (trip * kTrip + lane) / kPerGroup;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      PieceX<Block> x;
#pragma unroll
      for (int slot = 0; slot < kSlots; ++slot) {
        const Bytes16 words = quants[(step * kSlots + slot) * kWave];
        for (int w = 0; w < 4; ++w) x.put(4 * slot + w, words.words[w]);
      }
      const OneGroup group = groups[step * kWave / kPerGroup];
#pragma unroll
      for (int o = 0; o < kMatvecOuts; ++o) {
        // A step is a multiple of 8 groups.
        const PackedScale scale = rows[o].scales[step].value((lane / kPerGroup) & 7);
        sums[o] = add(rows[o].pieces[step], scale, x, group, sums[o]);
      }
    }
  }

 private:
  static constexpr int kSlots = kElements / 16;

  // Planes follow one another in a ring's place. kWhole: all pieces of the trip exist; else it sets
  // everything past the row's end to 0.
  template <bool kWhole>
  RB_DEVICE void copy_planes(i32 to, const u8* row, i32 trip, int lane) const {
    const u32 at = shared_address(staged()) + static_cast<u32>(to + lane * 16);
    copy_plane<kWhole, Trip::kLow>(at, row, trip, lane);
    copy_plane<kWhole, Trip::kHigh>(at + Trip::kLow, row + p_.high, trip, lane);
    copy_plane<kWhole, Trip::kScale>(at + Trip::kLow + Trip::kHigh, row + p_.scale, trip, lane);
    copy_plane<kWhole, Trip::kSuper>(at + Trip::kLow + Trip::kHigh + Trip::kScale, row + p_.super,
                                     trip, lane);
  }
  // kBytes: a trip's bytes in the plane.
  template <bool kWhole, int kBytes>
  RB_DEVICE void copy_plane(u32 to, const u8* plane, i32 trip, int lane) const {
    static_assert(kBytes % 16 == 0, "a trip is whole copies");
    const u8* from = plane + static_cast<u32>(trip * kBytes + lane * 16);
    // The plane's bytes from there on. Formats' blocks are whole, so none is cut.
    const i32 left = (p_.pieces - trip * kTrip) * kBytes / kTrip - lane * 16;
#pragma unroll
    for (int first = 0; first < kBytes; first += kWave * 16) {
      const bool wanted = first + kWave * 16 <= kBytes || first + lane * 16 < kBytes;
      i32 valid = 16;
      if (!kWhole) valid = left < first ? 0 : left < first + 16 ? left - first : 16;
      copy_async16_if(wanted, to + first, from + first, valid);
    }
  }

  // After the quants, 16 at a time. If a lane takes two such, they are in two runs, so that a
  // wave's reads of either adjoin.
  RB_DEVICE OneGroup* groups() const {
    return reinterpret_cast<OneGroup*>(staged() + trips() * kTrip * kElements);
  }
  RB_DEVICE static i32 slot_of(i32 sixteen) {
    const i32 piece = sixteen / kSlots;
    return (piece / kWave * kSlots + sixteen % kSlots) * kWave + piece % kWave;
  }

  RB_DEVICE static float add(const Piece& from, const PackedScale& scale, const PieceX<Block>& x,
                             const OneGroup& group, float sum) {
    if constexpr (Piece::kFloats) {
      E4m3Dot dot;
#pragma unroll
      for (int w = 0; w < kWords; ++w) dot.add(from.low[w], x.words[2 * w], x.words[2 * w + 1]);
      return fma(scale.d[0], group.d * dot.sum(), sum);
    }
    i32 dots[2] = {0, 0};
    if constexpr (kNibbles) {
      NibbleDot dot;
#pragma unroll
      for (int w = 0; w < kWords / 2; ++w) dot.add(from.low[w], x.words[2 * w], x.words[2 * w + 1]);
      dots[0] = dot.sum();
    } else {
      u32 codes[kWords];
      from.unpack(codes);
#pragma unroll
      for (int w = 0; w < kWords; ++w) {
        i32& dot = dots[kHalves ? w / 4 : 0];
        dot = dot4(codes[w], x.words[w], dot);
      }
    }
    constexpr float kOffset = F::kOffset;
#pragma unroll
    for (int half = 0; half < (kHalves ? 2 : 1); ++half) {
      const float x_sum = kHalves ? group.halves[half] : group.total;
      float product = group.d * static_cast<float>(dots[half]);
      if (F::kOffset != 0) product = fma(-kOffset, x_sum, product);
      sum = fma(scale.d[half], product, sum);
      if (kMinima) sum = fma(scale.m[half], x_sum, sum);
    }
    return sum;
  }

  const MatvecOneParams& p_;
};

template <class Block, int kWave>
RB_DEVICE void matvec_one_quant(const MatvecOneParams& p) {
  open_book<Block, kPackedOneThreads>(thread_x());  // stage() has a barrier
  MatvecOne<QuantOne<Block, kWave>, kWave> work(p);
  work.run();
}

#define RB_ONE(lanes, wave, dtype, Block)                                             \
  RB_KERNEL_AHEAD(matvec_one_##dtype##_##wave, kPackedOneThreads, 1, MatvecOneParams, \
                  (matvec_one_quant<Block, lanes>(p)))
#define RB_MATVEC_ONE(dtype, Block) RB_WAVES(RB_ONE, dtype, Block)

}  // namespace gpu
}  // namespace rbee
