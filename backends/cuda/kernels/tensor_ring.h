#pragma once
// Matrix products on Hopper. The copy engine (TMA) fetches the operands. One thread fills a ring of
// steps, and two warpgroups multiply. A step is 128 bytes of each row of both operands, under the
// 128-byte swizzle. Two blocks form a cluster: their tiles have one operand in common, which is
// fetched once for both, so half as many bytes go through the second-level cache.
//
// Rows of the right operand (outputs of a layer, filters) are reordered: row 4 i + b lies in the
// tile's quarter b. So the sums of a thread are runs of eight neighbours.

#include "backends/cuda/kernels/tensor_copies.h"
#include "backends/cuda/kernels/wgmma_rows.h"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

namespace rbee {
namespace gpu {

constexpr int kProducts = 2;  // warpgroups that multiply
constexpr int kRingThreads = (kProducts + 1) * kGroup;
constexpr int kRingBytes = 225 * 1024;
constexpr int kMostStages = 7;

struct RingBarriers {
  u64 full[kMostStages], empty[kMostStages];
};

// A place in the ring, and the parity of its rounds, which is that of a phase.
template <int kStages>
struct RingPlace {
  int stage = 0;
  u32 parity = 0;
  RB_DEVICE void next() {
    if (++stage < kStages) return;
    stage = 0;
    parity ^= 1;
  }
};

// The shape of a tile: rows of the left operand by rows of the right one; kMost: stages.
template <int kTileRows, int kTileOuts, int kMost = kMostStages>
struct TileShape {
  static constexpr int kRows = kTileRows, kOuts = kTileOuts;
  static constexpr int kPartRows = kRows / kProducts;  // of a warpgroup
  static constexpr int kHalves = kPartRows / kGroupRows;
  static constexpr int kSums = kOuts / 2;  // of a thread, for each 64 rows
  static constexpr int kLeftBytes = kRows * kSwizzleRow;
  static constexpr int kStageBytes = kLeftBytes + kOuts * kSwizzleRow;
  static constexpr int kFit = kRingBytes / kStageBytes;
  static constexpr int kStages = kFit < kMost ? kFit : kMost;
};

// A thread's results of a tile, in the two warpgroups: kRuns runs of eight neighbours, in the order
// of their writes: those of a row's 32 columns, for each of the thread's rows.
template <class Tile>
struct TileRuns {
  static constexpr int kRun = 8, kRunsOfRow = Tile::kOuts / (4 * kRun);
  static constexpr int kThreadRows = 2 * Tile::kHalves;  // eight apart
  static constexpr int kRuns = kRunsOfRow * kThreadRows;

  // Of the tile; thread: of both warpgroups.
  RB_DEVICE static int row(int thread, int thread_row) {
    return thread / kGroup * Tile::kPartRows + thread % kGroup / 32 * 16 + thread % 32 / 4 +
           thread_row / 2 * kGroupRows + thread_row % 2 * 8;
  }
  RB_DEVICE static int out(int thread, int i) { return (i / kThreadRows * 4 + thread % 4) * kRun; }
  RB_DEVICE static void take(const float (&sums)[Tile::kHalves][Tile::kSums], int i,
                             float (&run)[kRun]) {
    const int row = i % kThreadRows, columns = i / kThreadRows;
#pragma unroll
    for (int e = 0; e < 2; ++e) {
#pragma unroll
      for (int b = 0; b < 4; ++b)
        run[4 * e + b] = sums[row / 2][(b * kRunsOfRow + columns) * 4 + row % 2 * 2 + e];
    }
  }
};

// One thread calls it, before all pass cluster_barrier(). arrivals: at a full stage.
template <class Tile>
RB_DEVICE void start_ring(RingBarriers& barriers, u32 arrivals) {
  for (int i = 0; i < Tile::kStages; ++i) {
    start_barrier(&barriers.full[i], arrivals);
    start_barrier(&barriers.empty[i], 2 * kProducts);
  }
  publish_barriers();
}

// A multiplying warpgroup's view of the ring.
template <class Tile>
class RingReader {
 public:
  RB_DEVICE RingReader(RingBarriers& barriers, u32 base, int group)
      : barriers_(barriers),
        left_(base + static_cast<u32>(group * Tile::kPartRows * kSwizzleRow)),
        right_(base + Tile::kLeftBytes),
        rank_(block_of_cluster()) {}

  RB_DEVICE void wait() const { wait_phase(&barriers_.full[place_.stage], place_.parity); }
  RB_DEVICE int stage() const { return place_.stage; }
  RB_DEVICE void next() { place_.next(); }
  // Matrix descriptors of this warpgroup's rows and of the right operand, `bytes` into the step.
  RB_DEVICE u64 left(int half, u32 bytes) const {
    return matrix_descriptor(at(left_) + static_cast<u32>(half * kGroupRows * kSwizzleRow) + bytes,
                             16, 1024);
  }
  RB_DEVICE u64 right(u32 bytes) const { return matrix_descriptor(at(right_) + bytes, 16, 1024); }
  // This warpgroup no longer needs the oldest stage; both blocks must hear of it, since both write
  // to it. Products end for all warps of the group at once.
  RB_DEVICE void release() {
    u64* empty = &barriers_.empty[released_.stage];
    const u32 thread = thread_x() % kGroup;
    if (thread == 0) arrive(empty);
    if (thread == 32) arrive_at(empty, rank_ ^ 1);
    released_.next();
  }

 private:
  RB_DEVICE u32 at(u32 operand) const {
    return operand + static_cast<u32>(place_.stage * Tile::kStageBytes);
  }

  RingBarriers& barriers_;
  const u32 left_, right_;  // in the first stage
  const u32 rank_;
  RingPlace<Tile::kStages> place_, released_;
};

// The sums of a tile over `steps` steps of 64 elements in 16 bits: products of one step are still
// under way when the next one's begin.
template <class T, class Tile>
RB_DEVICE void sum_steps(RingReader<Tile>& ring, int steps,
                         float (&sums)[Tile::kHalves][Tile::kSums]) {
  for (int step = 0; step < steps; ++step) {
    ring.wait();
#pragma unroll
    for (int half = 0; half < Tile::kHalves; ++half) pin(sums[half]);
    warpgroup_begin();
#pragma unroll
    for (u32 k = 0; k < kStepDepth; k += 16) {
#pragma unroll
      for (int half = 0; half < Tile::kHalves; ++half)
        multiply_rows<T>(sums[half], ring.left(half, 2 * k), ring.right(2 * k));
    }
    warpgroup_commit();
    if (step > 0) {
      warpgroup_wait<1>();  // the step before
      ring.release();
    }
    ring.next();
  }
  warpgroup_wait<0>();
  ring.release();
#pragma unroll
  for (int half = 0; half < Tile::kHalves; ++half) pin(sums[half]);
}

// Eight neighbours of a row.
template <class T>
RB_DEVICE Pack<T> load_run(const void* row, i64 at) {
  return load128(static_cast<const T*>(row) + at);
}
template <class T>
RB_DEVICE void add_run(const Pack<T>& from, float (&sums)[8]) {
#pragma unroll
  for (int e = 0; e < 8; ++e) sums[e] += load_value(from.values[e]);
}
// In one instruction; from most of a tile's stores the compiler does not make one.
RB_DEVICE void store_four(float* to, const float* from) {
  asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(from[0]), "f"(from[1]),
               "f"(from[2]), "f"(from[3])
               : "memory");
}

}  // namespace gpu
}  // namespace rbee

#endif
