#pragma once
// Moves operands of matrix instructions through registers into shared memory. A step is 32 elements
// of the depth: 64 bytes of each row, in four chunks that are swizzled, so that eight rows read at
// one chunk lie in different banks.

#include "backends/gpu/kernels/gemm_operand.h"

namespace rbee {
namespace gpu {

constexpr int kStepDepth = 32;
constexpr int kStepBytes = 64;
constexpr int kStaged = 16;  // elements of a row that a thread moves at a time

// The place of chunk 0..3 of a staged row.
RB_DEVICE u32 chunk_offset(int row, int chunk) {
  return static_cast<u32>(row * kStepBytes + ((chunk ^ ((row >> 1) & 3)) << 4));
}

// A thread's part of an operand: half a step of line thread_x() / 2 of a tile. Zeros beyond the
// operand's ends.
template <class T>
class OperandStage {
 public:
  // The tile's lines from line0 on.
  RB_DEVICE OperandStage(const Operand& from, int line0) : depth_(from.depth) {
    const int line = line0 + static_cast<int>(thread_x()) / 2;
    within_ = line < from.lines;
    row_ = static_cast<const T*>(from.data) + static_cast<i64>(within_ ? line : 0) * from.pitch;
  }
  // For lines that are not adjacent: the line at `row`, which is read only if `within`.
  RB_DEVICE OperandStage(const T* row, bool within, int depth)
      : row_(row), within_(within), depth_(depth) {}
  // Reads a step's part into registers.
  RB_DEVICE void load(int step) {
    const int column = step * kStepDepth + static_cast<int>(thread_x()) % 2 * kStaged;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      const int at = column + i * Pack<T>::kCount;
      packs_[i] = within_ && at < depth_ ? load128(row_ + at) : Pack<T>{};
    }
  }
  // Writes it to the operand's place in shared memory.
  RB_DEVICE void store(u8* to) const {
    const int line = static_cast<int>(thread_x()) / 2;
    const int chunk = static_cast<int>(thread_x()) % 2 * kPacks;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      *reinterpret_cast<Pack<T>*>(to + chunk_offset(line, chunk + i)) = packs_[i];
    }
  }

 private:
  static constexpr int kPacks = kStaged / Pack<T>::kCount;
  const T* row_;
  bool within_;  // not beyond the last line
  int depth_;
  Pack<T> packs_[kPacks] = {};
};

}  // namespace gpu
}  // namespace rbee
