#pragma once
// matvec_one_tma.h on weights that are multiplied as 16-bit floats (PTX ISA 8.x, section
// 9.7.14.5.8): plain ones, and packed e4m3 codes, which become f16 exactly. x is a sum of terms of
// that type, as many as its own precision needs.
//
// mma.m16n8k16 with g = lane / 4 and t = lane % 4: of a stage's 16 rows a lane holds rows g and
// g + 8, and of eight neighbouring pieces it holds pieces t and t + 4, swapped if g is odd, so
// that lanes read other banks. Column c of x has the pieces in the order of odd rows if c is odd,
// and belongs to term c / 2: so the sums of a row's terms are columns of its own kind, and each
// lane has two of them.
#include "backends/cuda/kernels/matvec_one_tma.h"
#include "backends/cuda/kernels/mma_ptx.h"
#include "backends/gpu/kernels/widen_codes.h"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

namespace rbee {
namespace gpu {

// Of weights W: their stages, and the type of the products.
template <class W>
struct FloatStage {
  using Planes = PlainStage;
  using Term = W;
  static constexpr bool kCodes = false;
};
template <>
struct FloatStage<BlockF8_G128> {
  using Planes = PackedStage<BlockF8_G128>;
  using Term = f16;
  static constexpr bool kCodes = true;
};

// A multiplying warp's part: 16 rows of a stage, and eight of its pieces.
template <class W>
class OneFloats {
 public:
  using Stage = typename FloatStage<W>::Planes;
  static constexpr int kBookBytes = 0;
  using Term = typename FloatStage<W>::Term;

  // x: from stage_x().
  RB_DEVICE OneFloats(const TensorOneParams& p, const u8* x)
      : x_(x),
        terms_(p.terms),
        lane_(static_cast<int>(thread_x()) % 32),
        row_(static_cast<int>(thread_x()) / 32 % 2 * 16 + lane_ / 4),
        octet_(static_cast<int>(thread_x()) / 64) {
    const int term = lane_ / 8 < terms_ ? lane_ / 8 : 0;  // else a column that is not used
    x_first_ = term * term_bytes(p) + octet_ * kOctetBytes;
    scales_ = reinterpret_cast<const float*>(x + terms_ * term_bytes(p)) + octet_ / kOctets;
  }

  // Terms one after another: of each eight pieces their first eight elements, then the others.
  // After them the divisors of the terms of each kOneScaled inputs.
  template <class T>
  RB_DEVICE static float stage_x(const TensorOneParams& p, u8* to) {
    const i32 runs = p.steps * (Stage::kElements / kXRun);
    const i32 bytes = term_bytes(p);
    float* scales = reinterpret_cast<float*>(to + p.terms * bytes);
    OneInput<T> x(p.one);
    wait_for_x(p);
    return x.each(runs, [&](i32 run, const float(&values)[kXRun]) {
      float rest[kXRun], by = 1;
      if (kScaled) by = factor_of(values, run, runs, scales);
      if (run >= runs) return;
#pragma unroll
      for (int i = 0; i < kXRun; ++i) rest[i] = values[i] * by;
      const i32 octet = run / (8 * kParts), of_octet = run % (8 * kParts);
      Bytes16* place = reinterpret_cast<Bytes16*>(to) + octet * (8 * kParts) +
                       of_octet % kParts * 8 + of_octet / kParts;
#pragma unroll 1
      for (i32 term = 0; term < p.terms; ++term) {
        Bytes16 pairs;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          pairs.words[i] = round_pair<Term>(rest[2 * i], rest[2 * i + 1]);
          rest[2 * i] -= load_value(element<Term>(pairs.words, 2 * i));
          rest[2 * i + 1] -= load_value(element<Term>(pairs.words, 2 * i + 1));
        }
        *place = pairs;
        place += bytes / 16;
      }
    });
  }

  RB_DEVICE void begin() {
    x_at_ = x_first_;
    sums_[0] = sums_[1] = 0;
    clear();
  }

  // Adds a stage; calls released() once it no longer reads the stage.
  template <class Released>
  RB_DEVICE void add(const u8* stage, i32 step, const Released& released) {
    Bytes16 rows[2][2], x[2][kParts];  // of the two products; of rows g and g + 8, of parts
    float scales[2];
#pragma unroll
    for (int product = 0; product < 2; ++product) {
      const int piece = (product ^ (lane_ / 4 & 1)) * 4 + lane_ % 4;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const u8* row = stage + (row_ + 8 * r) * Stage::kLow;
        rows[product][r] = reinterpret_cast<const Bytes16*>(row)[octet_ * 8 + piece];
      }
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        x[product][part] = reinterpret_cast<const Bytes16*>(x_ + x_at_)[part * 8 + piece];
      }
    }
    if constexpr (kScaled) load_scales(stage, step, scales);
    x_at_ += Stage::kElements * 2;
#pragma unroll
    for (int product = 0; product < 2; ++product)
      multiply(rows[product], x[product], dots_[product]);
    released();
    if constexpr (kScaled) {
#pragma unroll
      for (int r = 0; r < 2; ++r) sums_[r] = fma(scales[r], dot(r), sums_[r]);
      clear();
    }
  }

  // Calls put(octet, row, sum) for this lane's rows of the stage once all stages of a tile are
  // added, and then done(), by kOneRowLanes lanes of a warp.
  template <class Put, class Done>
  RB_DEVICE void end(const Put& put, const Done& done) {
    const bool has_term = lane_ % 4 < terms_;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float sum = kScaled ? sums_[r] : dot(r);
      sums_[r] = wave_sum<32, 4>(has_term ? sum : 0.0f);
    }
    if (lane_ % 4 != 0) return;
#pragma unroll
    for (int r = 0; r < 2; ++r) put(octet_, row_ + 8 * r, sums_[r]);
    done();
  }

 private:
  static constexpr bool kCodes = FloatStage<W>::kCodes;
  static constexpr bool kScaled = SameType<Term, f16>::value;
  static constexpr int kParts = Stage::kElements / kOnePieces / 8;  // of a piece, of 8 elements
  static constexpr int kOctetBytes = 8 * kParts * 16;
  static constexpr int kOctets = kOneScaled / (8 * kParts * 8);  // with one scale

  RB_DEVICE static i32 term_bytes(const TensorOneParams& p) {
    return p.steps * (Stage::kElements * 2);
  }

  // The factor that brings the largest of kOneScaled inputs, of 16 lanes, into [2^14, 2^15).
  RB_DEVICE static float factor_of(const float (&values)[kXRun], i32 run, i32 runs, float* scales) {
    u32 largest = 0;
#pragma unroll
    for (int i = 0; i < kXRun; ++i) {
      largest = Max{}(largest, bits_of_float(values[i]) & 0x7fffffffu);
    }
    constexpr u32 kBias = 127, kTop = 14;
    const u32 exponent = Max{}(wave_max<32, 16>(largest) >> 23, kTop + 1);
    if (run < runs && run % 16 == 0) scales[run / 16] = float_of_bits((exponent - kTop) << 23);
    return float_of_bits((2 * kBias + kTop - exponent) << 23);
  }

  RB_DEVICE void load_scales(const u8* stage, i32 step, float (&scales)[2]) const {
    const float of_x = scales_[step * (Stage::kElements / kOneScaled)];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      scales[r] = of_x;
      if constexpr (kCodes) {
        using At = StagePlanes<Stage>;
        const u8* of_row = stage + At::kScale + (row_ + 8 * r) * At::kScaleRow;
        scales[r] *= reinterpret_cast<const float*>(of_row)[octet_];
      }
    }
  }

  RB_DEVICE static void multiply(const Bytes16 (&rows)[2], const Bytes16 (&x)[kParts],
                                 float (&sums)[4]) {
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      u32 pairs[2][4];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        if constexpr (kCodes) {
          widen(rows[r].words[2 * part], pairs[r][0], pairs[r][1]);
          widen(rows[r].words[2 * part + 1], pairs[r][2], pairs[r][3]);
        } else {
#pragma unroll
          for (int i = 0; i < 4; ++i) pairs[r][i] = rows[r].words[i];
        }
      }
#pragma unroll
      for (int i = 0; i < 4; i += 2) {
        const u32 four[4] = {pairs[0][i], pairs[1][i], pairs[0][i + 1], pairs[1][i + 1]};
        multiply_add<Term>(sums, four, x[part].words[i], x[part].words[i + 1]);
      }
    }
  }
  RB_DEVICE static void widen(u32 codes, u32& first, u32& second) {
    u32 pairs[2];
    Widen<f16, Codes::e4m3, 0>::run(codes, pairs);
    first = pairs[0];
    second = pairs[1];
  }

  // Of row g + 8 r: the column of its order.
  RB_DEVICE float dot(int r) const {
    const bool odd = (lane_ / 4 & 1) != 0;
    const float even_sum = dots_[0][2 * r] + dots_[1][2 * r];
    const float odd_sum = dots_[0][2 * r + 1] + dots_[1][2 * r + 1];
    return odd ? odd_sum : even_sum;
  }
  RB_DEVICE void clear() {
#pragma unroll
    for (int i = 0; i < 4; ++i) dots_[0][i] = dots_[1][i] = 0;
  }

  const u8* x_;
  const float* scales_;
  const int terms_, lane_, row_, octet_;
  i32 x_first_, x_at_ = 0;
  float dots_[2][4], sums_[2];
};

}  // namespace gpu
}  // namespace rbee

#endif
