#pragma once
// y = x * weight^T + bias of many rows of x and packed weights (packed_weight.h) on Hopper
// (sm_90a). Weights stay packed until they are in registers: rows of the weight are the first
// operand of warpgroups' products, which a lane unpacks from shared memory as it needs them, and x
// is the second, which the copy engine fetches. So the product reads what the planes hold, and
// writes its results alone, or parts of sums where tiles share the depth.
//
// Three things go on at once: one thread fetches x, two warps copy units of weights,
// and two warpgroups of 64 outputs each unpack and multiply; one unpacks while the other's products
// are under way. A cluster of two blocks shares x.
#include "backends/cuda/kernels/packed_rows.h"
#include "backends/cuda/kernels/tensor_ring.h"
#include "backends/shared/packed_gemm_params.h"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

namespace rbee {
namespace gpu {

constexpr int kGroupOuts = 64;  // of a warpgroup
constexpr int kCopyWarp = 2;    // the first of those that copy weights
using PackedCopying = Copying<kPackedOuts, 64>;

struct PackedBarriers {
  u64 x_full[kPackedMostSteps], x_empty[kPackedMostSteps];
  u64 weight_full[kPackedStages], weight_empty[kPackedStages];
};

// c += a * b^T: 64 rows of a, in registers, by 128 or 256 of b in shared memory, 16 elements of
// each. As RB_COLUMNS of attention_wgmma.h, whose b lies across.
template <class T>
RB_DEVICE void multiply_left(float (&c)[64], const u32 (&a)[4], u64 b);
template <class T>
RB_DEVICE void multiply_left(float (&c)[128], const u32 (&a)[4], u64 b);
#define RB_LEFT(T, type, columns, count, second, third, fourth, fifth)                     \
  template <>                                                                              \
  RB_DEVICE void multiply_left<T>(float(&c)[count], const u32(&a)[4], u64 b) {             \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." type "." type      \
                 " {" RB_NAMES##count "}, {%" #count ", %" second ", %" third ", %" fourth \
                                      "}, %" fifth ", 1, 1, 1, 0;"                         \
                 : RB_F##count(c)                                                          \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                    \
  }
RB_LEFT(f16, "f16", "128", 64, "65", "66", "67", "68")
RB_LEFT(f16, "f16", "256", 128, "129", "130", "131", "132")
RB_LEFT(bf16, "bf16", "128", 64, "65", "66", "67", "68")
RB_LEFT(bf16, "bf16", "256", 128, "129", "130", "131", "132")

// One tile of weights, the rows of x from `row` on, and a share of the depth.
struct PackedWork {
  int tile, row, split;
  int first, end;  // units of 128 elements

  RB_DEVICE PackedWork(const PackedGemmParams& p, i32 unit, int rows) {
    const i32 splits = p.few.splits, units = p.few.in / 128;
    split = unit % splits;
    const i32 rest = unit / splits;
    row = rest % p.row_tiles * rows;
    tile = 2 * (rest / p.row_tiles) + static_cast<int>(block_of_cluster());
    first = units * split / splits;
    end = units * (split + 1) / splits;
  }
};

template <class Block, class T, int kRows>
class PackedGemm {
 public:
  RB_DEVICE PackedGemm(const PackedGemmParams& p, PackedBarriers& barriers, u8* ring)
      : p_(p), barriers_(barriers), ring_(ring) {}

  RB_DEVICE void start() const {
    prefetch_map(p_.x);
    for (int i = 0; i < kSteps; ++i) {
      start_barrier(&barriers_.x_full[i], 1);
      start_barrier(&barriers_.x_empty[i], 2 * kProducts);
    }
    for (int i = 0; i < kPackedStages; ++i) {
      start_barrier(&barriers_.weight_full[i], PackedCopying::kThreads);
      start_barrier(&barriers_.weight_empty[i], kProducts * kGroup);
    }
    publish_barriers();
  }

  // The thread that fetches x: each block of the cluster half of the rows, for both.
  RB_DEVICE void fetch_x() const {
    RingPlace<kSteps> at;
    const int half = static_cast<int>(block_of_cluster()) * (kRows / 2);
    const u32 base = shared_address(ring_);
    each([&](const PackedWork& work) {
      for (int step = 2 * work.first; step < 2 * work.end; ++step, at.next()) {
        u64* full = &barriers_.x_full[at.stage];
        wait_phase(&barriers_.x_empty[at.stage], at.parity ^ 1);
        arrive_with_bytes(full, kStepBytes);
        copy_box<true>(base + static_cast<u32>(at.stage * kStepBytes + half * kSwizzleRow), p_.x,
                       full, step * kStepDepth, work.row + half, 0, 0);
      }
    });
  }

  // Two warps.
  RB_DEVICE void copy_weights() const {
    const PackedCopying by{static_cast<int>(thread_x()) - kCopyWarp * 32};
    RingPlace<kPackedStages> at;
    const u32 base = shared_address(ring_ + kWeights);
    each([&](const PackedWork& work) {
      const Tile tile = tile_of(work);
      for (int unit = work.first; unit < work.end; ++unit, at.next()) {
        wait_phase(&barriers_.weight_empty[at.stage], at.parity ^ 1);
        tile.copy(by, unit, base + static_cast<u32>(at.stage * Tile::kBytes));
        arrive_after_copies(&barriers_.weight_full[at.stage]);
      }
    });
    commit_copies();
    wait_copies<0>();
  }

  // A warpgroup that multiplies.
  RB_DEVICE void multiply(int group) {
    group_ = group;
    each([&](const PackedWork& work) {
      float sums[kSums] = {};
      sum(work, sums);
      store(work, sums);
    });
  }

 private:
  using Tile = PackedTile<Block, kPackedOuts>;
  using Lane = PackedLane<Block, T, kPackedOuts>;
  static constexpr int kSums = kRows / 2;  // of a thread
  static constexpr int kStepBytes = kRows * kSwizzleRow;
  static constexpr int kSteps = packed_steps(kRows, Tile::kBytes);
  static constexpr int kWeights = kSteps * kStepBytes;   // the ring of weights lies behind x's
  static constexpr int kStepProducts = kStepDepth / 16;  // of a step

  template <class Work>
  RB_DEVICE void each(const Work& work) const {
    for (u32 unit = cluster_x(); unit < static_cast<u32>(p_.units); unit += clusters())
      work(PackedWork(p_, static_cast<i32>(unit), kRows));
  }
  // With an odd number of tiles the last block does the last one again, for nothing.
  RB_DEVICE Tile tile_of(const PackedWork& work) const {
    const int tile = work.tile < p_.few.tiles ? work.tile : p_.few.tiles - 1;
    const MatvecPart part = few_part(p_.few, static_cast<u32>(tile));
    const i64 out0 = (tile - static_cast<i64>(part.first_block)) * kPackedOuts;
    return Tile(part, out0, p_.few.in);
  }
  RB_DEVICE int lane() const { return static_cast<int>(thread_x()) % 32; }
  // Of the tile: the first output that the thread's first sums are of.
  RB_DEVICE int first_out() const {
    return group_ * kGroupOuts + static_cast<int>(thread_x()) % kGroup / 32 * 16 + lane() / 4;
  }

  RB_DEVICE void load(Lane& lane, int unit) {
    wait_phase(&barriers_.weight_full[weight_.stage], weight_.parity);
    lane.load(SharedBytes{ring_ + kWeights + weight_.stage * Tile::kBytes}, unit);
    arrive(&barriers_.weight_empty[weight_.stage]);
    weight_.next();
  }
  RB_DEVICE static void unpack(const Lane& lane, int half, u32 (&a)[kStepProducts][4]) {
#pragma unroll
    for (int i = 0; i < kStepProducts; ++i) lane.step(half * kStepProducts + i, a[i]);
  }
  // Begins a step's products.
  RB_DEVICE void begin(const u32 (&a)[kStepProducts][4], float (&sums)[kSums]) {
    wait_phase(&barriers_.x_full[x_.stage], x_.parity);
    const u32 from = shared_address(ring_) + static_cast<u32>(x_.stage * kStepBytes);
    pin(sums);
    warpgroup_begin();
#pragma unroll
    for (int i = 0; i < kStepProducts; ++i)
      multiply_left<T>(sums, a[i], matrix_descriptor(from + static_cast<u32>(32 * i), 16, 1024));
    warpgroup_commit();
    x_.next();
  }
  // The oldest step of x may be replaced, in both blocks.
  RB_DEVICE void release() {
    u64* empty = &barriers_.x_empty[released_.stage];
    const u32 thread = thread_x() % kGroup;
    if (thread == 0) arrive(empty);
    if (thread == 32) arrive_at(empty, block_of_cluster() ^ 1);
    released_.next();
  }

  RB_DEVICE void sum(const PackedWork& work, float (&sums)[kSums]) {
    Lane lane(p_.few.in, first_out());
    u32 first[kStepProducts][4], second[kStepProducts][4];
    load(lane, work.first);
    unpack(lane, 0, first);
    for (int unit = work.first; unit < work.end; ++unit) {
      begin(first, sums);
      if (unit > work.first) {
        warpgroup_wait<1>();
        release();
      }
      unpack(lane, 1, second);
      begin(second, sums);
      if (unit + 1 < work.end) load(lane, unit + 1);
      warpgroup_wait<1>();
      release();
      if (unit + 1 < work.end) unpack(lane, 0, first);
    }
    warpgroup_wait<0>();
    release();
    pin(sums);
  }

  RB_DEVICE void store(const PackedWork& work, const float (&sums)[kSums]) const {
    if (work.tile >= p_.few.tiles) return;
    const MatvecPart part = few_part(p_.few, static_cast<u32>(work.tile));
    const i64 out0 = (work.tile - static_cast<i64>(part.first_block)) * kPackedOuts;
    if (p_.few.splits > 1) {
      store_part(work, sums);
    } else if (p_.few.floats != 0) {
      store_floats(work, part, out0, sums);
    } else {
      store_pairs(work, part, out0, sums);
    }
  }
  // f(out of the tile, row of x, sum): what the thread has.
  template <class Take>
  RB_DEVICE void each_sum(const PackedWork& work, const float (&sums)[kSums],
                          const Take& take) const {
#pragma unroll
    for (int i = 0; i < kSums; ++i) {
      const int row = work.row + i / 4 * 8 + lane() % 4 * 2 + i % 2;
      if (row < p_.few.rows) take(first_out() + i / 2 % 2 * 8, row, sums[i]);
    }
  }
  RB_DEVICE void store_part(const PackedWork& work, const float (&sums)[kSums]) const {
    const i64 rows = (static_cast<i64>(work.tile) * p_.few.splits + work.split) * p_.few.rows;
    float* to = p_.few.partials + rows * kPackedOuts;
    each_sum(work, sums, [&](int out, int row, float sum) { to[row * kPackedOuts + out] = sum; });
  }
  RB_DEVICE void store_floats(const PackedWork& work, const MatvecPart& part, i64 out0,
                              const float (&sums)[kSums]) const {
    float* y = static_cast<float*>(part.y);
    const float* bias = static_cast<const float*>(part.bias);
    each_sum(work, sums, [&](int out, int row, float sum) {
      if (out0 + out >= part.outs) return;
      y[row * part.outs + out0 + out] = sum + (bias == nullptr ? 0.0f : bias[out0 + out]);
    });
  }
  // Pairs of neighbouring outputs: eight rows by eight outputs are turned at a time.
  RB_DEVICE void store_pairs(const PackedWork& work, const MatvecPart& part, i64 out0,
                             const float (&sums)[kSums]) const {
    T* y = static_cast<T*>(part.y);
    float bias[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const i64 out = out0 + first_out() + 8 * i;
      bias[i] = part.bias == nullptr || out >= part.outs
                    ? 0.0f
                    : load_value(static_cast<const T*>(part.bias)[out]);
    }
    const int within = first_out() - lane() / 4 + lane() % 4 * 2;
#pragma unroll
    for (int i = 0; i < kSums / 2; ++i) {
      const u32 turned =
          turn(round_pair<T>(sums[2 * i] + bias[i % 2], sums[2 * i + 1] + bias[i % 2]));
      const int row = work.row + i / 2 * 8 + lane() / 4;
      const i64 out = out0 + within + i % 2 * 8;
      if (row < p_.few.rows && out < part.outs)
        *reinterpret_cast<u32*>(y + row * part.outs + out) = turned;
    }
  }
  RB_DEVICE static u32 turn(u32 pair) {
    u32 out;
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(out) : "r"(pair));
    return out;
  }

  const PackedGemmParams& p_;
  PackedBarriers& barriers_;
  u8* const ring_;
  int group_ = 0;
  RingPlace<kSteps> x_, released_;
  RingPlace<kPackedStages> weight_;
};

template <class Block, class T, int kRows>
RB_DEVICE void gemm_packed(const PackedGemmParams& p) {
  extern __shared__ u8 dynamic[];
  RB_SHARED PackedBarriers barriers;
  const u32 address = shared_address(dynamic);
  PackedGemm<Block, T, kRows> gemm(p, barriers, dynamic + (((address + 1023) & ~1023u) - address));
  if (thread_x() == 0) gemm.start();
  cluster_barrier();
  wait_for_previous_kernel();
  const int group = static_cast<int>(thread_x()) / kGroup;
  if (group == 0) {
    shrink_registers<72>();
    const int warp = static_cast<int>(thread_x()) / 32;
    if (thread_x() == 0) gemm.fetch_x();
    if (warp >= kCopyWarp) gemm.copy_weights();
    wave_barrier();
  } else {
    grow_registers<216>();
    gemm.multiply(group - 1);
  }
  // A block's shared memory stays until the other one no longer writes to it.
  cluster_barrier();
}

#define RB_PACKED_GEMM(dtype, Block, x, T, rows)                                            \
  extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(kPackedThreads, 1) \
      gemm_packed_##x##_##dtype##_r##rows(const __grid_constant__ PackedGemmParams p) {     \
    start_next_kernel();                                                                    \
    gemm_packed<Block, T, rows>(p);                                                         \
  }
#define RB_GEMM_PACKED(dtype, Block)            \
  RB_PACKED_GEMM(dtype, Block, f16, f16, 128)   \
  RB_PACKED_GEMM(dtype, Block, f16, f16, 256)   \
  RB_PACKED_GEMM(dtype, Block, bf16, bf16, 128) \
  RB_PACKED_GEMM(dtype, Block, bf16, bf16, 256)

}  // namespace gpu
}  // namespace rbee

#else
#define RB_GEMM_PACKED(dtype, Block)
#endif
