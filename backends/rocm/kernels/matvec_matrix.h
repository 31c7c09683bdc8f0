#pragma once
// y = x * weight^T + bias for up to 64 rows of x on matrix instructions (matrix_units.h), weights
// packed (packed_weight.h) or of x's type. Rows of the weight are the product's first operand: a
// lane reads its share of a unit of one of 16 rows into registers a unit ahead, and passes the
// product values in x's type. x goes through shared memory, for all waves of a block. The weights'
// memory limits it; with many rows, the reads of x from shared memory do, on
// gfx11 the matrix instructions.
#include "backends/gpu/kernels/few_parts.h"
#include "backends/gpu/kernels/packed_points.h"
#include "backends/gpu/kernels/widen_codes.h"
#include "backends/rocm/kernels/matrix_units.h"

#if RB_MATRIX_UNIT

namespace rbee {
namespace gpu {

// Device memory that the kernel reads a second time soon: a lane's load can be a part of a memory
// transaction, the rest of which is its next load.
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
RB_DEVICE Words2 read_words2(DeviceBytes from) {
  return shared::read_words2(from.data);
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

// The values of a word's first or last two e4m3 codes.
template <bool kLast>
RB_DEVICE Floats<2> floats_of_e4m3(u32 codes) {
#if defined(__gfx950__) || defined(__GFX12__)
  return __builtin_amdgcn_cvt_pk_f32_fp8(static_cast<int>(codes), kLast);
#else
  // A float of one byte is a wider one's first bits, except for the exponents' biases.
  const i32 low = static_cast<i32>(codes << (kLast ? 8 : 24));
  const i32 high = static_cast<i32>(codes << (kLast ? 0 : 16));
  const Floats<2> small = {float_of_bits(static_cast<u32>(low >> 4) & 0x87f00000u),
                           float_of_bits(static_cast<u32>(high >> 4) & 0x87f00000u)};
  return small * float_of_bits(0x7b800000u);  // 2^120
#endif
}

// The values of four neighbouring codes, in the bytes of a word: d * quant + m rounded to T, as
// two pairs.
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
// There is no arithmetic on pairs of bf16, so it takes f32's.
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

constexpr int kParts = 4;  // a unit is so many products

// Rows of a packed weight. A lane has kParts * kChunks neighbouring chunks of a unit's 16, which
// are kChunks groups of 32 codes.
template <class Block, class T>
class PackedRows {
 public:
  static constexpr bool kWhole = Block::kElements % PackedUnit<Block>::kElements == 0;

  // A lane's part of a unit of a row.
  struct Held {
    PackedPiece<Block> pieces[kChunks][32 / PackedPiece<Block>::kElements];
    StoredScale<Block> scales[kChunks];
  };
  // The same as values.
  struct Opened {
    CodeValues<Block, T> values[kChunks][Block::kGroup == 16 ? 2 : 1];  // scales for 32 elements
    u32 codes[kChunks][8];
  };

  RB_DEVICE explicit PackedRows(i32 in) : in_(in), at_(packed_layout<Block>(in)) {}
  RB_DEVICE i64 row_bytes() const { return at_.row_bytes; }

  RB_DEVICE void load(const u8* from, i32 unit, int lane, Held& to) const {
    const DeviceBytes row{from};
    const RowPlanes<DeviceBytes> planes{row, row + at_.high, row + at_.scale, row + at_.super};
#pragma unroll
    for (int g = 0; g < kChunks; ++g) {
      u32 group = static_cast<u32>(unit) * 4 | static_cast<u32>(first_group(lane) | g);
      if (!kWhole && group * 32 >= static_cast<u32>(in_))
        group = 0;  // any group of the row: x is 0 there
#pragma unroll
      for (int i = 0; i < kPieces; ++i) {
        to.pieces[g][i].load(planes, i64{group} * kPieces + i);
      }
      to.scales[g].load(planes, i64{group});
    }
  }

  RB_DEVICE void open(const Held& here, i32 unit, int lane, Opened& to) const {
#pragma unroll
    for (int g = 0; g < kChunks; ++g) {
      const i32 group = unit * 4 + first_group(lane) + g;
      const PackedScale scale = here.scales[g].value(group & 7);
#pragma unroll
      for (int half = 0; half < kHalves; ++half) {
        to.values[g][half].set(scale.d[half], scale.m[half]);
      }
#pragma unroll
      for (int i = 0; i < kPieces; ++i) {
        u32 some[8 / kPieces];
        here.pieces[g][i].unpack(some);
#pragma unroll
        for (int w = 0; w < 8 / kPieces; ++w) to.codes[g][i * (8 / kPieces) + w] = some[w];
      }
    }
  }

  // Chunk c of the lane's part of product `part` of a unit, and its number among the unit's 16.
  RB_DEVICE static Chunk chunk(const Opened& from, int part, int c) {
    const int chunk = part * kChunks + c;  // of the lane
    const int g = chunk / 4, half = chunk % 4 / 2 % kHalves;
    Chunk out;
#pragma unroll
    for (int w = 0; w < 2; ++w) {
      u32 pairs[2];
      from.values[g][half].run(from.codes[g][chunk % 4 * 2 + w], pairs);
      out[2 * w] = pairs[0];
      out[2 * w + 1] = pairs[1];
    }
    return out;
  }
  RB_DEVICE static int place(int part, int c, int lane) {
    return first_group(lane) * 4 + part * kChunks + c;
  }

 private:
  static constexpr int kPieces = 32 / PackedPiece<Block>::kElements;
  static constexpr int kHalves = Block::kGroup == 16 ? 2 : 1;
  static_assert(PackedUnit<Block>::kElements * sizeof(T) == kFewRowBytes, "a unit is 16 chunks");

  // The first of a lane's groups in a unit.
  RB_DEVICE static int first_group(int lane) {
#if defined(__GFX11__)
    return 0;  // both halves of a wave have the same
#else
    return lane / 16 * kChunks;
#endif
  }

  i32 in_;
  PackedLayout at_;
};

// Rows of a weight of x's type, in whole chunks. The lanes of a row read chunks side by side.
template <class T>
class PlainRows {
 public:
  static constexpr bool kWhole = false;
  struct Held {
    Chunk chunks[kParts][kChunks];
  };
  using Opened = Held;

  RB_DEVICE explicit PlainRows(i32 in) : in_(in) {}
  RB_DEVICE i64 row_bytes() const { return i64{in_} * static_cast<int>(sizeof(T)); }

  // Past the row's end it reads the first chunk, and x counts as zeros.
  RB_DEVICE void load(const u8* from, i32 unit, int lane, Held& to) const {
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
        const u32 chunk = static_cast<u32>(unit) * 16 | static_cast<u32>(place(part, c, lane));
        const u32 at = chunk * 8 < static_cast<u32>(in_) ? chunk * 16 : 0;
        to.chunks[part][c] = *reinterpret_cast<const Chunk*>(from + at);
      }
    }
  }
  RB_DEVICE void open(const Held& here, i32, int, Opened& to) const { to = here; }
  RB_DEVICE static Chunk chunk(const Opened& from, int part, int c) { return from.chunks[part][c]; }
  RB_DEVICE static int place(int part, int c, int lane) { return chunk_of_lane(part, c, lane); }

 private:
  i32 in_;
};

// A block's tile of a linear layer: all rows of x by kFewMatrixOuts of a part's outputs,
// and a share of the depth.
template <class T>
class FewRowsWork {
 public:
  RB_DEVICE explicit FewRowsWork(const FewRowsParams& params) : p_(params) {}

  RB_DEVICE i32 in() const { return p_.in; }
  RB_DEVICE i32 rows() const { return p_.rows; }
  RB_DEVICE MatvecPart part() const { return few_part(p_, block_x()); }
  RB_DEVICE i64 first_out(const MatvecPart& part) const {
    return (block_x() - part.first_block) * static_cast<i64>(kFewMatrixOuts);
  }
  RB_DEVICE i32 first_unit(i32 units) const { return units * split() / p_.splits; }
  RB_DEVICE i32 end_unit(i32 units) const { return units * (split() + 1) / p_.splits; }
  // Row `row` of x, which is the thread's chunk i.
  RB_DEVICE const T* x_row(int, int row) const {
    return static_cast<const T*>(p_.x) + static_cast<i64>(row) * p_.in;
  }

  RB_DEVICE float bias(const MatvecPart& part, i64 out) const {
    if (p_.splits > 1 || part.bias == nullptr) return 0.0f;
    if (p_.floats != 0) return static_cast<const float*>(part.bias)[out];
    return load_value(static_cast<const T*>(part.bias)[out]);
  }
  // within: the output's place in the tile.
  RB_DEVICE void store(const MatvecPart& part, int row, i64 out, int within, float sum) const {
    if (p_.splits > 1) {
      const i64 tile_rows = (static_cast<i64>(block_x()) * p_.splits + split()) * p_.rows;
      p_.partials[(tile_rows + row) * kFewMatrixOuts + within] = sum;
    } else if (p_.floats != 0) {
      static_cast<float*>(part.y)[row * part.outs + out] = sum;
    } else {
      static_cast<T*>(part.y)[row * part.outs + out] = store_value<T>(sum);
    }
  }

 private:
  RB_DEVICE static i32 split() { return static_cast<i32>(block_y()); }

  const FewRowsParams& p_;
};

// Rows: PackedRows or PlainRows. Work: FewRowsWork, or the like. kRows: rows of x that there is
// room for, 16, 32 or 64.
template <class Rows, class Work, class T, int kRows>
class FewMatrix {
 public:
  RB_DEVICE explicit FewMatrix(const Work& work)
      : work_(work),
        lane_(static_cast<int>(thread_x()) % kWave),
        wave_(static_cast<int>(thread_x()) / kWave),
        weight_(work.in()) {
    const MatvecPart part = work_.part();
    const i64 out0 = work_.first_out(part);
#pragma unroll
    for (int line = 0; line < kLines; ++line) {
      i64 out = out0 + (wave_ * kLines + line) * 16 + lane_ % 16;
      if (out >= part.outs) out = part.outs - 1;  // its sums are not used
      rows_[line] = static_cast<const u8*>(part.weight) + out * weight_.row_bytes();
    }
    const i32 units = (work_.in() + kUnit - 1) / kUnit;
    first_ = work_.first_unit(units);
    end_ = work_.end_unit(units);
  }

  // stages: two of kStage bytes of shared memory.
  RB_DEVICE void run(u8 (*stages)[kRows * kFewRowBytes]) {
    Held here[kLines], next[kLines];
    load(first_, here);
    loads_before();  // no load may be under way after x's
    load_x(first_);
    store_x(first_, stages[0]);
    // Two units a trip, so that held values change names and do not move. A trip's path
    // has no branches: compilers would wait for loads as on the shortest path.
    i32 unit = first_;
    for (; unit + 1 < end_; unit += 2) {
      step(unit, here, next, stages[0], stages[1]);
      step(unit + 1, next, here, stages[1], stages[0]);
    }
    if (unit < end_) {
      shared_barrier();
      multiply(unit, here, stages[0]);
    }
    store();
  }

 private:
  using Held = typename Rows::Held;
  static constexpr int kUnit = kFewRowBytes / static_cast<int>(sizeof(T));  // elements
  static constexpr int kWaves = kFewMatrixThreads / kWave;
  static constexpr int kLines = kFewMatrixOuts / 16 / kWaves;  // of 16 rows of the weight, a wave's
  static constexpr int kColumns = kRows / 16;
  static constexpr int kXChunks = kRows * 16 / kFewMatrixThreads;  // of a thread
  static_assert(kXChunks > 0, "a thread has some of x");

  RB_DEVICE void load(i32 unit, Held (&to)[kLines]) const {
#pragma unroll
    for (int line = 0; line < kLines; ++line) weight_.load(rows_[line], unit, lane_, to[line]);
  }

  // Rows past the last repeat it: no result uses them.
  RB_DEVICE void load_x(i32 unit) {
#pragma unroll
    for (int i = 0; i < kXChunks; ++i) {
      const int row = x_place(i) / 16 < work_.rows() ? x_place(i) / 16 : work_.rows() - 1;
      const i32 column = x_column(unit, i);
      const T* from = work_.x_row(i, row) + (within(column) ? column : 0);
      x_[i] = *reinterpret_cast<const Chunk*>(from);
    }
  }
  // Past the end: zeros. Set here, since changing a loaded register waits for the load.
  RB_DEVICE void store_x(i32 unit, u8* stage) const {
#pragma unroll
    for (int i = 0; i < kXChunks; ++i) {
      const Chunk words = within(x_column(unit, i)) ? x_[i] : Chunk(0);
      *reinterpret_cast<Chunk*>(stage + chunk_at(x_place(i) / 16, x_place(i) % 16)) = words;
    }
  }
  // Chunk i of the thread's, of 16 a row.
  RB_DEVICE static int x_place(int i) {
    return i * kFewMatrixThreads + static_cast<int>(thread_x());
  }
  RB_DEVICE static i32 x_column(i32 unit, int i) { return unit * kUnit + x_place(i) % 16 * 8; }
  RB_DEVICE bool within(i32 column) const { return Rows::kWhole || column < work_.in(); }
  // The place of a chunk of a row of x: rows read at one chunk are in different banks.
  RB_DEVICE static int chunk_at(int row, int chunk) {
    return row * kFewRowBytes + ((chunk ^ (row & 15)) << 4);
  }

  // The last unit is read twice.
  RB_DEVICE void step(i32 unit, const Held (&here)[kLines], Held (&next)[kLines], const u8* stage,
                      u8* next_stage) {
    shared_barrier();  // all have this unit's x, and none reads the other stage
    const i32 after = unit + 1 < end_ ? unit + 1 : unit;
    load_x(after);
    loads_before();  // loads come in the order of their use
    load(after, next);
    loads_before();
    multiply(unit, here, stage);
    loads_before();
    store_x(after, next_stage);
  }
  // A barrier that shows only shared memory as others wrote it: loads stay under way.
  RB_DEVICE static void shared_barrier() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup", "local");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup", "local");
  }

  RB_DEVICE void multiply(i32 unit, const Held (&here)[kLines], const u8* stage) {
    typename Rows::Opened opened[kLines];
#pragma unroll
    for (int line = 0; line < kLines; ++line) weight_.open(here[line], unit, lane_, opened[line]);
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      Fragment weights[kLines];
#pragma unroll
      for (int line = 0; line < kLines; ++line) {
        Chunks words;
#pragma unroll
        for (int c = 0; c < kChunks; ++c) words.chunks[c] = Rows::chunk(opened[line], part, c);
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
    Chunks out;
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const int at = chunk_at(row, Rows::place(part, c, lane_));
      out.chunks[c] = *reinterpret_cast<const Chunk*>(stage + at);
    }
    return __builtin_bit_cast(Fragment, out);
  }

  RB_DEVICE void store() const {
    const MatvecPart part = work_.part();
    const i64 out0 = work_.first_out(part);
    constexpr int kCount = sizeof(Results) / sizeof(float);
#pragma unroll
    for (int line = 0; line < kLines; ++line) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        const int within = (wave_ * kLines + line) * 16 + result_row(i, lane_);
        const i64 out = out0 + within;
        if (out >= part.outs) continue;
        const float add = work_.bias(part, out);
#pragma unroll
        for (int n = 0; n < kColumns; ++n) {
          const int row = n * 16 + lane_ % 16;
          if (row >= work_.rows()) break;
          work_.store(part, row, out, within, sums_[line][n][i] + add);
        }
      }
    }
  }

  const Work& work_;
  int lane_, wave_;
  Rows weight_;
  const u8* rows_[kLines];
  i32 first_, end_;    // units of the block
  Chunk x_[kXChunks];  // the next unit's
  Results sums_[kLines][kColumns] = {};
};

// Weight: a block type, or T.
template <class Weight, class T>
struct RowsOf {
  using Type = PackedRows<Weight, T>;
};
template <class T>
struct RowsOf<T, T> {
  using Type = PlainRows<T>;
};

template <class Weight, class T, int kRows>
RB_DEVICE void few_matrix(const FewRowsParams& p) {
  alignas(16) RB_SHARED u8 stages[2][kRows * kFewRowBytes];
  share_book<Weight, kFewMatrixThreads>();
  const FewRowsWork<T> work(p);
  FewMatrix<typename RowsOf<Weight, T>::Type, FewRowsWork<T>, T, kRows>(work).run(stages);
}

#define RB_FEW_MATRIX(dtype, Weight, T, n)                                        \
  RB_KERNEL(matvec_matrix_##T##_##dtype##_n##n, kFewMatrixThreads, FewRowsParams, \
            (few_matrix<Weight, T, 8 * n>(p)))
#define RB_FEW_MATRIX_SIZES(dtype, Weight, T) \
  RB_FEW_MATRIX(dtype, Weight, T, 2)          \
  RB_FEW_MATRIX(dtype, Weight, T, 4)          \
  RB_FEW_MATRIX(dtype, Weight, T, 8)
#define RB_MATVEC_MATRIX(dtype, Block)   \
  RB_FEW_MATRIX_SIZES(dtype, Block, f16) \
  RB_FEW_MATRIX_SIZES(dtype, Block, bf16)
#define RB_MATVEC_MATRIX_PLAIN(T) RB_FEW_MATRIX_SIZES(T, T, T)

}  // namespace gpu
}  // namespace rbee

#else

#define RB_MATVEC_MATRIX(dtype, Block)
#define RB_MATVEC_MATRIX_PLAIN(T)

#endif
