#pragma once
// The steps of a product on gfx950, which copies from device memory to shared memory without
// registers (CDNA 4 ISA, GLOBAL_LOAD_LDS_DWORDX4), so two steps are under way beside the one
// in use. Shared memory has the steps of gemm_steps.h. A copy writes neighbouring
// lanes' 16 bytes side by side, so each lane reads what belongs in its place.

#include "backends/rocm/kernels/gemm_matrix.h"

#if defined(__gfx950__)

namespace rbee {
namespace gpu {

// Lane l's 16 bytes go to `to` + 16 l. `to`: one for all lanes of a wave.
RB_DEVICE void copy_direct16(u8* to, const u8* from) {
  using To = __attribute__((address_space(3))) void;
  using From = __attribute__((address_space(1))) void;
  // NOLINTNEXTLINE: only C's casts reach these address spaces
  __builtin_amdgcn_global_load_lds((From*)from, (To*)to, 16, 0, 0);
}
// Waits until at most kPending copies of this wave are under way.
template <int kPending>
RB_DEVICE void wait_direct() {
  static_assert(kPending < 16, "the low bits of vmcnt");
  __builtin_amdgcn_s_waitcnt(0x0f70 | kPending);
}

// Shows to all of the block the copies of this wave that it has waited for, and its own writes
// to shared memory. A fence would wait for all copies.
RB_DEVICE void barrier_beside_copies() {
  asm volatile("s_waitcnt lgkmcnt(0)\n\ts_barrier" ::: "memory");
}

// A wave's part of an operand: 32 lines of a tile, in two copies. Past the last line it repeats
// that line.
class DirectOperand {
 public:
  static constexpr int kCopies = 2;

  // The tile's lines from line0 on.
  RB_DEVICE DirectOperand(const Operand& from, int line0)
      : DirectOperand(static_cast<const u8*>(from.data) + static_cast<i64>(line0) * from.pitch * 2,
                      from.lines - line0, from.pitch, [](int line) { return line; }) {}
  // Lines that are not adjacent: line i of `lines` is the operand's row_of(i).
  template <class RowOf>
  RB_DEVICE DirectOperand(const void* data, int lines, int pitch, RowOf row_of)
      : from_(static_cast<const u8*>(data)) {
    // The same in all lanes, which the compiler cannot see.
    const u32 wave = __builtin_amdgcn_readfirstlane(thread_x() / kWave);
    const int lane = static_cast<int>(thread_x()) % kWave;
    const int first = static_cast<int>(wave) * kCopies * kLinesOfCopy;
    place_ = first * kStepBytes;
    // The same for all lines of the wave that a lane copies: see chunk_offset().
    chunk_ = (lane % 4) ^ (lane / 8 % 4);
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const int line = first + i * kLinesOfCopy + lane / 4;
      own_[i] = static_cast<i64>(row_of(line < lines ? line : lines - 1)) * pitch * 2 + chunk_ * 16;
    }
  }

  // Asks for the next step, a whole one. to: the operand's place in shared memory.
  RB_DEVICE void copy(u8* to) const {
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      copy_direct16(to + place_ + i * kBytesOfCopy, from_ + own_[i]);
    }
  }
  // Moves on by this many bytes of each line.
  RB_DEVICE void advance(int bytes) { from_ += bytes; }
  // The rest of a depth that is not whole steps, and zeros; not ahead of the products.
  RB_DEVICE void store_rest(u8* to, int left) const {
    const int lane = static_cast<int>(thread_x()) % kWave;
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      Chunk chunk = Chunk(0);
      if (chunk_ * 8 < left) chunk = *reinterpret_cast<const Chunk*>(from_ + own_[i]);
      *reinterpret_cast<Chunk*>(to + place_ + i * kBytesOfCopy + lane * 16) = chunk;
    }
  }

 private:
  static constexpr int kLinesOfCopy = kWave / 4, kBytesOfCopy = kWave * 16;

  const u8* from_;  // the place of the next step in the first row
  int place_;       // of the wave's lines in a step
  int chunk_;
  i64 own_[kCopies];  // bytes from `from_` to the lane's place
};

// Adds the products of all steps.
template <class Tile, class T>
RB_DEVICE void copy_and_multiply(typename Tile::Sums& sums, DirectOperand x, DirectOperand weight,
                                 int depth) {
  constexpr int kStages = 3;  // three blocks of them share a compute unit's 160 KiB
  constexpr int kStageBytes = 2 * Tile::kOperandBytes;
  static_assert(Tile::kLines / 32 * kWave == Tile::kThreads, "a wave copies 32 lines");
  alignas(16) RB_SHARED u8 stages[kStages * kStageBytes];
  const int steps = depth / kStepDepth;
  const auto behind = [](int stage) {
    return stage == (kStages - 1) * kStageBytes ? 0 : stage + kStageBytes;
  };
  // After the last step, copies it again to an unused stage, so that as many copies are under way.
  const auto copy = [&](int step, int stage) {
    x.copy(stages + stage);
    weight.copy(stages + stage + Tile::kOperandBytes);
    const int bytes = step + 1 < steps ? kStepBytes : 0;
    x.advance(bytes);
    weight.advance(bytes);
  };
  if (steps > 0) {
    copy(0, 0);
    copy(1, kStageBytes);
  }
  int read = 0, write = 2 * kStageBytes;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    wait_direct<2 * DirectOperand::kCopies>();
    barrier_beside_copies();  // all have this step, and none reads the stage of the one before
    copy(step + 2, write);
    multiply_step<Tile, T>(sums, stages + read, stages + read + Tile::kOperandBytes);
    read = behind(read);
    write = behind(write);
  }
  wait_direct<0>();  // no copy may write to shared memory after the block has ended
  const int left = depth % kStepDepth;
  if (left == 0) return;
  barrier();
  const int bytes = steps > 0 ? kStepBytes : 0;
  x.advance(bytes);
  weight.advance(bytes);
  x.store_rest(stages, left);
  weight.store_rest(stages + Tile::kOperandBytes, left);
  barrier();
  multiply_step<Tile, T>(sums, stages, stages + Tile::kOperandBytes);
}

}  // namespace gpu
}  // namespace rbee

#endif
