#pragma once
// Operands of matrix instructions on their way through registers into shared memory. A step is 32
// elements of the depth: 64 bytes of each row, in four chunks that are swizzled, so that eight rows
// read at one chunk lie in different banks.

#include "backends/gpu/portable.h"
#include "backends/shared/packed_weight.h"

namespace rbee {
namespace gpu {

constexpr int kStepDepth = 32;
constexpr int kStepBytes = 64;
constexpr int kRun = 16;  // elements of a row that a thread moves at a time

// Where chunk 0..3 of a staged row lies.
RB_DEVICE u32 chunk_offset(int row, int chunk) {
  return static_cast<u32>(row * kStepBytes + ((chunk ^ ((row >> 1) & 3)) << 4));
}

// Runs: kRun elements as memory holds them. load() reads them from column on, a multiple of kRun
// inside the row; chunk<T>(0 or 1) gives half of them as T.

template <class Block>
struct PackedRun {
  u32 codes[kRun / 4];
  BlockScale scale;

  static RB_DEVICE i64 row_bytes(int depth) { return packed_layout<Block>(depth).row_bytes; }
  RB_DEVICE void load(const u8* row, int depth, int column) {
    const PackedLayout layout = packed_layout<Block>(depth);
#pragma unroll
    for (int i = 0; i < kRun / 4; ++i) {
      codes[i] = packed_codes<Block>(row, layout, column + 4 * i);
    }
    const PackedScale both = packed_scale<Block>(row, layout, column / 32);
    const int half = column / 16 % 2;
    scale = BlockScale{half != 0 ? both.d[1] : both.d[0], half != 0 ? both.m[1] : both.m[0]};
  }
  RB_DEVICE float value(int i) const {
    return apply_scale(scale, packed_quant<Block>(codes[i / 4], i % 4));
  }
  template <class T>
  RB_DEVICE Bytes16 chunk(int which) const {
    Bytes16 out;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      out.words[i] = round_pair<T>(value(which * 8 + 2 * i), value(which * 8 + 2 * i + 1));
    }
    return out;
  }
};

// Row-major elements; rows are multiples of 16 bytes.
template <class W>
struct PlainRun {
  static constexpr int kEach = Pack<W>::kCount;
  Pack<W> packs[kRun / kEach];

  static RB_DEVICE i64 row_bytes(int depth) {
    return static_cast<i64>(depth) * static_cast<i64>(sizeof(W));
  }
  RB_DEVICE void load(const u8* row, int depth, int column) {
    const W* from = reinterpret_cast<const W*>(row) + column;
#pragma unroll
    for (int i = 0; i < kRun / kEach; ++i) {
      packs[i] = column + i * kEach < depth ? load128(from + i * kEach) : Pack<W>{};
    }
  }
  RB_DEVICE float value(int i) const { return load_value(packs[i / kEach].values[i % kEach]); }
  template <class T>
  RB_DEVICE Bytes16 chunk(int which) const {
    if constexpr (SameType<T, W>::value) {
      return __builtin_bit_cast(Bytes16, packs[which]);
    } else {
      Bytes16 out;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        out.words[i] = round_pair<T>(value(which * 8 + 2 * i), value(which * 8 + 2 * i + 1));
      }
      return out;
    }
  }
};

// A thread's part of an operand (lines, depth): half a step of line thread_x() / 2 of a tile. Zeros
// beyond the operand's ends.
template <class Run>
class OperandStage {
 public:
  RB_DEVICE OperandStage(const void* data, int line0, int lines, int depth) : depth_(depth) {
    const int line = line0 + static_cast<int>(thread_x()) / 2;
    within_ = line < lines;
    row_ = static_cast<const u8*>(data) + (within_ ? line : 0) * Run::row_bytes(depth);
  }
  // Reads a step's part into registers.
  RB_DEVICE void load(int step) {
    const int column = step * kStepDepth + static_cast<int>(thread_x()) % 2 * kRun;
    inside_ = within_ && column < depth_;
    if (inside_) run_.load(row_, depth_, column);
  }
  // Writes it to the operand's place in shared memory.
  template <class T>
  RB_DEVICE void store(u8* to) const {
    const int line = static_cast<int>(thread_x()) / 2;
#pragma unroll
    for (int which = 0; which < 2; ++which) {
      const int chunk = static_cast<int>(thread_x()) % 2 * 2 + which;
      *reinterpret_cast<Bytes16*>(to + chunk_offset(line, chunk)) =
          inside_ ? run_.template chunk<T>(which) : Bytes16{};
    }
  }

 private:
  const u8* row_;
  bool within_;  // not beyond the last line
  int depth_;
  bool inside_ = false;
  Run run_;
};

}  // namespace gpu
}  // namespace rbee
