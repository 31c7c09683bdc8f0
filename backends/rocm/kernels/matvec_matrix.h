#pragma once
// y = x * weight^T + bias for up to 64 rows of x and packed weights (packed_weight.h) on matrix
// instructions (matrix_units.h). Rows of the weight are the product's first operand: a lane reads
// its share of a unit of one of 16 rows, whole groups of 32 codes, into registers a unit ahead and
// gives the product their values in x's type. x goes through shared memory, for all waves of a
// block. Limited by the memory that the weights are read from; with many rows by what reads x from
// shared memory, on gfx11 by the matrix instructions.
#include "backends/gpu/kernels/few_parts.h"
#include "backends/gpu/kernels/packed_piece.h"
#include "backends/gpu/kernels/widen_codes.h"
#include "backends/rocm/kernels/matrix_units.h"

#if RB_MATRIX_UNIT

namespace rbee {
namespace gpu {

// Device memory that is read a second time soon: a lane's load can be a part of what memory gives
// out at once, the rest of which is its next.
struct DeviceBytes {
  const u8* data;
  RB_DEVICE DeviceBytes operator+(i64 bytes) const { return {data + bytes}; }
};
RB_DEVICE u8 read_u8(DeviceBytes from) {
  return *from.data;
}
RB_DEVICE u16 read_u16(DeviceBytes from) {
  return shared::read_u16(from.data);
}
RB_DEVICE u32 read_u32(DeviceBytes from) {
  return shared::read_u32(from.data);
}
RB_DEVICE Words4 read_words4(DeviceBytes from) {
  return shared::read_words4(from.data);
}
template <int kWords>
RB_DEVICE void load_once(DeviceBytes from, u32 (&words)[kWords]) {
  struct alignas(4 * kWords) Words {
    u32 words[kWords];
  };
  const Words all = *reinterpret_cast<const Words*>(from.data);
  for (int i = 0; i < kWords; ++i) words[i] = all.words[i];
}

// Two floats as a pair of bf16, rounded to nearest: no NaN but those that conversions make.
RB_DEVICE u32 round_bf16_pair(Floats<2> values) {
#if defined(__gfx950__)
  return __builtin_bit_cast(u32, __builtin_convertvector(values, Vector<__bf16, 2>));
#else
  const u32 low = bits_of_float(values[0]) + 0x8000u;
  const u32 high = bits_of_float(values[1]) + 0x8000u;
  return pick_bytes<0x7632>(low, high);
#endif
}

// The values of a word's first or last two e4m3 codes.
template <bool kLast>
RB_DEVICE Floats<2> floats_of_e4m3(u32 codes) {
#if defined(__gfx950__) || defined(__GFX12__)
  return __builtin_amdgcn_cvt_pk_f32_fp8(static_cast<int>(codes), kLast);
#else
  // A float of one byte is a wider one's first bits, less what the exponents' biases differ by.
  const i32 low = static_cast<i32>(codes << (kLast ? 8 : 24));
  const i32 high = static_cast<i32>(codes << (kLast ? 0 : 16));
  const Floats<2> small = {float_of_bits(static_cast<u32>(low >> 4) & 0x87f00000u),
                           float_of_bits(static_cast<u32>(high >> 4) & 0x87f00000u)};
  return small * float_of_bits(0x7b800000u);  // 2^120
#endif
}

// What four neighbouring codes, in the bytes of a word, stand for, d * quant + m rounded to T, as
// two pairs. Scales of all bits 0 make zeros of codes that are no NaN.
template <class Block, class T>
class CodeValues;
template <class Block>
class CodeValues<Block, f16> {
 public:
  RB_DEVICE void set(float d, float m) {
    by_ = round_pair<f16>(d, d);
    plus_ = kHasMinima<Block> ? round_pair<f16>(m, m) : kMinusZeroPair;
  }
  RB_DEVICE void run(u32 codes, u32 (&pairs)[2]) const {
    Widen<f16, kCodesOf<Block>, PackedFormat<Block>::kOffset>::run(codes, pairs);
    pairs[0] = fma_pair<f16>(pairs[0], by_, plus_);
    pairs[1] = fma_pair<f16>(pairs[1], by_, plus_);
  }

 private:
  u32 by_, plus_;
};
// There is no arithmetic on pairs of bf16: f32's.
template <class Block>
class CodeValues<Block, bf16> {
 public:
  RB_DEVICE void set(float d, float m) {
    d_ = d;
    constexpr float kLess = kSigned ? 128.0f : PackedFormat<Block>::kOffset;
    plus_ = fma(d, -kLess, kHasMinima<Block> ? m : 0.0f);
  }
  RB_DEVICE void run(u32 codes, u32 (&pairs)[2]) const {
    if constexpr (kCodesOf<Block> == Codes::e4m3) {
      pairs[0] = round_bf16_pair(floats_of_e4m3<false>(codes) * d_);
      pairs[1] = round_bf16_pair(floats_of_e4m3<true>(codes) * d_);
    } else {
      if (kSigned) codes ^= 0x80808080u;  // + 128
      const Floats<2> first = {static_cast<float>(codes & 255u),
                               static_cast<float>(codes >> 8 & 255u)};
      const Floats<2> second = {static_cast<float>(codes >> 16 & 255u),
                                static_cast<float>(codes >> 24)};
      pairs[0] = round_bf16_pair(__builtin_elementwise_fma(first, Floats<2>(d_), Floats<2>(plus_)));
      pairs[1] =
          round_bf16_pair(__builtin_elementwise_fma(second, Floats<2>(d_), Floats<2>(plus_)));
    }
  }

 private:
  static constexpr bool kSigned = kCodesOf<Block> == Codes::signed_bytes;
  float d_, plus_;
};

// kRows: of x that there is room for, 16, 32 or 64.
template <class Block, class T, int kRows>
class FewMatrix {
 public:
  RB_DEVICE explicit FewMatrix(const FewPackedParams& params)
      : p_(params),
        lane_(static_cast<int>(thread_x()) % kWave),
        wave_(static_cast<int>(thread_x()) / kWave),
        at_(packed_layout<Block>(params.in)) {
    const MatvecPart part = few_part(p_, block_x());
    const i64 out0 = (block_x() - part.first_block) * static_cast<i64>(kFewMatrixOuts);
#pragma unroll
    for (int line = 0; line < kLines; ++line) {
      i64 out = out0 + (wave_ * kLines + line) * 16 + lane_ % 16;
      if (out >= part.outs) out = part.outs - 1;  // whose sums are not used
      rows_[line] = static_cast<const u8*>(part.weight) + out * at_.row_bytes;
    }
    const i32 units = (p_.in + Unit::kElements - 1) / Unit::kElements;
    const i32 split = static_cast<i32>(block_y());
    first_ = units * split / p_.splits;
    end_ = units * (split + 1) / p_.splits;
  }

  // stages: two of kStage bytes of shared memory.
  RB_DEVICE void run(u8 (*stages)[kRows * kFewRowBytes]) {
    Held here, next;
    load(first_, here);
    loads_before();  // so that nothing is under way behind x
    load_x(first_);
    store_x(stages[0]);
    // Two units a trip, so that what is held changes its name and does not move. The way through a
    // trip has no branches: compilers would wait for loads as on the shortest.
    for (i32 unit = first_;; unit += 2) {
      step(unit, here, next, stages[0], stages[1]);
      if (unit + 1 >= end_) break;
      step(unit + 1, next, here, stages[1], stages[0]);
      if (unit + 2 >= end_) break;
    }
    store();
  }

 private:
  using F = PackedFormat<Block>;
  using Piece = PackedPiece<Block>;
  using Unit = PackedUnit<Block>;
  static constexpr int kWaves = kFewMatrixThreads / kWave;
  static constexpr int kLines = kFewMatrixOuts / 16 / kWaves;  // of 16 rows of the weight, a wave's
  static constexpr int kChunks = sizeof(Fragment) / 16;        // of eight elements
  // A lane has 4 * kChunks of a unit's 16 chunks, which are kChunks groups of 32 codes.
  static constexpr int kGroups = kChunks;
  static constexpr int kPieces = 32 / Piece::kElements;
  static constexpr int kHalves = Block::kGroup == 16 ? 2 : 1;              // scales for 32 elements
  static constexpr bool kWhole = Block::kElements % Unit::kElements == 0;  // rows are whole units
  static constexpr int kColumns = kRows / 16;
  static constexpr int kXChunks = kRows * 16 / kFewMatrixThreads;  // of a thread
  static_assert(Unit::kElements * sizeof(T) == kFewRowBytes && kXChunks > 0, "a unit is 16 chunks");

  // What a lane has read of a unit.
  struct Held {
    Piece pieces[kLines][kGroups][kPieces];
    StoredScale<Block> scales[kLines][kGroups];
  };

  // The first of a lane's groups in a unit.
  RB_DEVICE int first_group() const {
#if defined(__GFX11__)
    return 0;  // both halves of a wave have the same
#else
    return lane_ / 16 * kGroups;
#endif
  }

  RB_DEVICE void load(i32 unit, Held& to) const {
#pragma unroll
    for (int line = 0; line < kLines; ++line) {
      const DeviceBytes row{rows_[line]};
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        u32 group = static_cast<u32>(unit) * 4 | static_cast<u32>(first_group() | g);
        if (!kWhole && group * 32 >= static_cast<u32>(p_.in)) group = 0;  // any: it counts as zeros
#pragma unroll
        for (int i = 0; i < kPieces; ++i) {
          to.pieces[line][g][i].load(row, row + at_.high, i64{group} * kPieces + i);
        }
        to.scales[line][g].load(row + at_.scale, row + at_.super, i64{group});
      }
    }
  }

  // Rows beyond the last are that again: what they give comes to no result.
  RB_DEVICE void load_x(i32 unit) {
    const T* x = static_cast<const T*>(p_.x);
#pragma unroll
    for (int i = 0; i < kXChunks; ++i) {
      const int at = i * kFewMatrixThreads + static_cast<int>(thread_x());
      const int row = at / 16 < p_.rows ? at / 16 : p_.rows - 1;
      const i32 column = unit * Unit::kElements + at % 16 * 8;
      const bool within = kWhole || column < p_.in;
      const i64 from = static_cast<i64>(row) * p_.in + (within ? column : 0);
      const auto words = *reinterpret_cast<const Vector<u32, 4>*>(x + from);
      x_[i] = within ? words : Vector<u32, 4>(0);
    }
  }
  RB_DEVICE void store_x(u8* stage) const {
#pragma unroll
    for (int i = 0; i < kXChunks; ++i) {
      const int at = i * kFewMatrixThreads + static_cast<int>(thread_x());
      *reinterpret_cast<Vector<u32, 4>*>(stage + chunk_at(at / 16, at % 16)) = x_[i];
    }
  }
  // Where a chunk of a row of x lies: rows that are read at one chunk are in different banks.
  RB_DEVICE static int chunk_at(int row, int chunk) {
    return row * kFewRowBytes + ((chunk ^ (row & 15)) << 4);
  }

  // The last unit is read twice.
  RB_DEVICE void step(i32 unit, const Held& here, Held& next, const u8* stage, u8* next_stage) {
    shared_barrier();  // this unit's x is there, and nobody reads the other stage
    const i32 after = unit + 1 < end_ ? unit + 1 : unit;
    load_x(after);
    load(after, next);
    loads_before();
    multiply(unit, here, stage);
    store_x(next_stage);
  }
  // A barrier behind which shared memory alone is as others wrote it: loads stay under way.
  RB_DEVICE static void shared_barrier() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup", "local");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup", "local");
  }

  RB_DEVICE void multiply(i32 unit, const Held& here, const u8* stage) {
    CodeValues<Block, T> values[kLines][kGroups][kHalves];
    u32 codes[kLines][kGroups][8];
#pragma unroll
    for (int line = 0; line < kLines; ++line) {
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        const i32 group = unit * 4 + first_group() + g;
        const bool live = kWhole || group * 32 < p_.in;
        const PackedScale scale = here.scales[line][g].value(group & 7);
#pragma unroll
        for (int half = 0; half < kHalves; ++half) {
          values[line][g][half].set(live ? scale.d[half] : 0.0f, live ? scale.m[half] : 0.0f);
        }
#pragma unroll
        for (int i = 0; i < kPieces; ++i) {
          u32 some[8 / kPieces];
          here.pieces[line][g][i].unpack(some);
#pragma unroll
          for (int w = 0; w < 8 / kPieces; ++w) codes[line][g][i * (8 / kPieces) + w] = some[w];
        }
      }
    }
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      Fragment weights[kLines];
#pragma unroll
      for (int line = 0; line < kLines; ++line) {
        struct Words {
          u32 words[kChunks][4];
        } words;
#pragma unroll
        for (int c = 0; c < kChunks; ++c) {
          const int chunk = part * kChunks + c;  // of the lane
          const int g = chunk / 4, half = chunk % 4 / 2 % kHalves;
#pragma unroll
          for (int w = 0; w < 2; ++w) {
            u32 pairs[2];
            values[line][g][half].run(codes[line][g][chunk % 4 * 2 + w], pairs);
            words.words[c][2 * w] = pairs[0];
            words.words[c][2 * w + 1] = pairs[1];
          }
        }
        weights[line] = __builtin_bit_cast(Fragment, words);
      }
#pragma unroll
      for (int n = 0; n < kColumns; ++n) {
        const Fragment x = x_fragment(stage, n * 16 + lane_ % 16, part);
#pragma unroll
        for (int line = 0; line < kLines; ++line) {
          multiply_add<T>(sums_[line][n], weights[line], x);
        }
      }
    }
  }

  RB_DEVICE Fragment x_fragment(const u8* stage, int row, int part) const {
    struct Chunks {
      Vector<u32, 4> chunks[kChunks];
    } out;
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const int chunk = first_group() * 4 + part * kChunks + c;
      out.chunks[c] = *reinterpret_cast<const Vector<u32, 4>*>(stage + chunk_at(row, chunk));
    }
    return __builtin_bit_cast(Fragment, out);
  }

  RB_DEVICE void store() const {
    const MatvecPart part = few_part(p_, block_x());
    const i64 out0 = (block_x() - part.first_block) * static_cast<i64>(kFewMatrixOuts);
    const i64 tile_rows =
        (static_cast<i64>(block_x()) * p_.splits + static_cast<i64>(block_y())) * p_.rows;
    constexpr int kCount = sizeof(Results) / sizeof(float);
#pragma unroll
    for (int line = 0; line < kLines; ++line) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        const int within = (wave_ * kLines + line) * 16 + result_row(i, lane_);
        const i64 out = out0 + within;
        if (out >= part.outs) continue;
        const float add = p_.splits == 1 && part.bias != nullptr ? bias(part, out) : 0.0f;
#pragma unroll
        for (int n = 0; n < kColumns; ++n) {
          const int row = n * 16 + lane_ % 16;
          if (row >= p_.rows) break;
          const float sum = sums_[line][n][i];
          if (p_.splits > 1) {
            p_.partials[(tile_rows + row) * kFewMatrixOuts + within] = sum;
          } else if (p_.floats != 0) {
            static_cast<float*>(part.y)[row * part.outs + out] = sum + add;
          } else {
            static_cast<T*>(part.y)[row * part.outs + out] = store_value<T>(sum + add);
          }
        }
      }
    }
  }

  RB_DEVICE float bias(const MatvecPart& part, i64 out) const {
    if (p_.floats != 0) return static_cast<const float*>(part.bias)[out];
    return load_value(static_cast<const T*>(part.bias)[out]);
  }

  const FewPackedParams& p_;
  int lane_, wave_;
  PackedLayout at_;
  const u8* rows_[kLines];
  i32 first_, end_;             // units of the block
  Vector<u32, 4> x_[kXChunks];  // the next unit's
  Results sums_[kLines][kColumns] = {};
};

template <class Block, class T, int kRows>
RB_DEVICE void few_matrix(const FewPackedParams& p) {
  alignas(16) RB_SHARED u8 stages[2][kRows * kFewRowBytes];
  FewMatrix<Block, T, kRows>(p).run(stages);
}

#define RB_FEW_MATRIX(dtype, Block, x, T, n)                                        \
  RB_KERNEL(matvec_matrix_##x##_##dtype##_n##n, kFewMatrixThreads, FewPackedParams, \
            (few_matrix<Block, T, 8 * n>(p)))
#define RB_MATVEC_MATRIX(dtype, Block)       \
  RB_FEW_MATRIX(dtype, Block, f16, f16, 2)   \
  RB_FEW_MATRIX(dtype, Block, f16, f16, 4)   \
  RB_FEW_MATRIX(dtype, Block, f16, f16, 8)   \
  RB_FEW_MATRIX(dtype, Block, bf16, bf16, 2) \
  RB_FEW_MATRIX(dtype, Block, bf16, bf16, 4) \
  RB_FEW_MATRIX(dtype, Block, bf16, bf16, 8)

}  // namespace gpu
}  // namespace rbee

#else

#define RB_MATVEC_MATRIX(dtype, Block)

#endif
