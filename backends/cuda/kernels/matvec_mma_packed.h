#pragma once
// y = x * weight^T + bias for up to 64 rows of x and packed weights (packed_weight.h) on tensor
// cores, sm_80 and later (PTX ISA: mma.m16n8k16, cp.async). Rows of the weight are the product's
// first operand: a warp has 16 rows of a tile, and a lane passes its part of two of them, 32 codes
// that share a scale, as values of x's type in registers. The weights' memory limits it; with
// many rows, the reads of x from shared memory do.
#include "backends/cuda/kernels/mma_tiles.h"
#include "backends/cuda/kernels/packed_rows.h"

namespace rbee {
namespace gpu {

// Waits until at most `pending` groups of this thread's copies are under way, 0 to
// kFewMostStages - 2.
RB_DEVICE void wait_copies_of(int pending) {
  static_assert(kFewMostStages == 6, "a case for each");
  switch (pending) {
    case 0:
      return wait_copies<0>();
    case 1:
      return wait_copies<1>();
    case 2:
      return wait_copies<2>();
    case 3:
      return wait_copies<3>();
    default:
      return wait_copies<4>();
  }
}

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
    tile_ = PackedTile<Block, kFewOuts>(part, out0, p_.in);
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
      barrier();  // all threads have this unit, and none reads the stage that is filled next
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
  using Tile = PackedTile<Block, kFewOuts>;
  using Unit = PackedUnit<Block>;
  static constexpr int kApart = 5;  // units between the starts of neighbouring blocks
  // Units of weights to ask for before the kernel in front has ended: more would delay its loads.
  static constexpr int kEarly = 3;
  static constexpr bool kWhole = Tile::kWhole;
  // Of a stage.
  static constexpr int kX = Tile::kBytes;
  static constexpr int kStage = kX + kN * 8 * kFewRowBytes;

  RB_DEVICE i32 unit(i32 i) const {
    const i32 within = start_ + i;
    return first_ + (within < count_ ? within : within - count_);
  }

  // Queue the copies of the block's i-th unit.
  RB_DEVICE void copy_weight(i32 i, int stage) const {
    const Copying<kFewOuts, kFewThreads> by{static_cast<int>(thread_x())};
    tile_.copy(by, unit(i), shared_address(ring_ + stage * kStage));
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
      if (row >= p_.rows) return;  // no result uses what is there instead
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
    PackedLane<Block, T, kFewOuts> lane(p_.in, warp_ * 16 + lane_ / 4);
    lane.load(from, unit);
    // The place of the lane's chunk 0 of its half of the first eight rows, and its swizzle.
    const int x_row = lane_ / 4, half = quarter / 2;
    const u8* x = from.data + (kX + x_row * kFewRowBytes + half * 128 + quarter % 2 * 64);
    const int swizzle = x_swizzle(x_row, half);
#pragma unroll
    for (int eighth = 0; eighth < 4; ++eighth) {  // 8 of the 32
      u32 w[2][4];
      lane.step(2 * eighth, w[0]);
      lane.step(2 * eighth + 1, w[1]);
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
  PackedTile<Block, kFewOuts> tile_;
  i32 first_, count_, start_;  // units of the block
  float sums_[kN][4] = {};
};

template <class Block, class T, int kN>
RB_DEVICE void few_packed(const FewRowsParams& p) {
  RB_DYNAMIC_SHARED(ring);
  open_book<Block, kFewThreads>(thread_x());  // run() has barriers before it multiplies
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
