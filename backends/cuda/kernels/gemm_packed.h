#pragma once
// y = x * weight^T + bias of many rows of x and packed weights (packed_weight.h) on Hopper
// (sm_90a). Weights stay packed until they are in registers: rows of the weight are the first
// operand of warpgroups' products, and a lane unpacks it from shared memory as needed. x is the
// second operand, which the copy engine fetches. So the product reads only the planes, and writes
// only its results and some partial sums.
//
// The units of all tiles, one tile after another, are cut into even shares, so that all blocks end
// at the same time (Osama et al. 2023, "Stream-K"). If another share begins a tile, a share leaves
// its partial sums of that tile in memory; the share that begins the tile adds them, in the order
// of the depth. A share begins with the work that other shares wait for.
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

// c += a * b^T: 64 rows of a, in registers, by 64, 128 or 256 of b in shared memory, 16 elements
// each. Like RB_COLUMNS of attention_wgmma.h, except that its b lies across.
template <class T>
RB_DEVICE void multiply_left(float (&c)[32], const u32 (&a)[4], u64 b);
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
RB_LEFT(f16, "f16", "64", 32, "33", "34", "35", "36")
RB_LEFT(f16, "f16", "128", 64, "65", "66", "67", "68")
RB_LEFT(f16, "f16", "256", 128, "129", "130", "131", "132")
RB_LEFT(bf16, "bf16", "64", 32, "33", "34", "35", "36")
RB_LEFT(bf16, "bf16", "128", 64, "65", "66", "67", "68")
RB_LEFT(bf16, "bf16", "256", 128, "129", "130", "131", "132")

// Where a cluster's share begins, in units of 128 elements of all pairs of tiles. Near a tile's
// border it moves to the border: a small rest of a tile costs more than it saves other shares.
RB_DEVICE i32 packed_share(const PackedGemmParams& p, u32 cluster) {
  constexpr i32 kNear = 2;
  const i32 units = p.few.in / 128;
  const i32 at = static_cast<i32>(static_cast<i64>(p.units) * cluster / clusters());
  const i32 within = at % units;
  if (within <= kNear) return at - within;
  return units - within <= kNear ? at + units - within : at;
}

// A share's part of one tile of weights and the rows of x from `row` on.
struct PackedWork {
  int tile, row;
  i32 begin;       // where the pair of tiles begins, as packed_share() counts
  int first, end;  // units of the tile
  int units;       // all of the tile

  RB_DEVICE PackedWork(const PackedGemmParams& p, i32 from, i32 to, int rows)
      : units(p.few.in / 128) {
    const i32 pair = from / units;
    row = pair % p.row_tiles * rows;
    tile = 2 * (pair / p.row_tiles) + static_cast<int>(block_of_cluster());
    begin = pair * units;
    first = from - begin;
    end = to - begin < units ? to - begin : units;
  }
};

// Lane 0's value; the compiler then sees that all lanes have the same and does not compute it
// again.
RB_DEVICE u32 same_in_lanes(u32 value) {
  return __shfl_sync(0xffffffffu, value, 0);
}

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

  // The thread that fetches x: each block of the cluster fetches half of the rows, for both.
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
    begin_reading();
    each([&](const PackedWork& work) {
      float sums[kSums] = {};
      sum(work, sums);
      if (work.first > 0) return leave(sums);
      if (work.end < work.units) add_others(work, sums);
      store(work, sums);
    });
  }

 private:
  using Tile = PackedTile<Block, kPackedOuts>;
  using Lane = PackedLane<Block, T, kPackedOuts>;
  static constexpr int kSums = kRows / 2;  // of a thread
  static constexpr int kStepBytes = kRows * kSwizzleRow;
  static constexpr int kSteps = packed_steps(kRows, Tile::kBytes, book_bytes<Block>());
  static constexpr int kWeights = kSteps * kStepBytes;   // the ring of weights comes after x's
  static constexpr int kStepProducts = kStepDepth / 16;  // of a step

  template <class Work>
  RB_DEVICE void each(const Work& work) const {
    const i32 end = packed_share(p_, cluster_x() + 1);
    for (i32 at = packed_share(p_, cluster_x()); at < end;) {
      const PackedWork now(p_, at, end, kRows);
      work(now);
      at = now.begin + now.end;
    }
  }
  // With an odd number of tiles the last block computes the last one again, and drops it.
  RB_DEVICE Tile tile_of(const PackedWork& work) const {
    const int tile = work.tile < p_.few.tiles ? work.tile : p_.few.tiles - 1;
    const MatvecPart part = few_part(p_.few, static_cast<u32>(tile));
    const i64 out0 = (tile - static_cast<i64>(part.first_block)) * kPackedOuts;
    return Tile(part, out0, p_.few.in);
  }
  RB_DEVICE int lane() const { return static_cast<int>(thread_x()) % 32; }
  // The tile's first output among the thread's sums.
  RB_DEVICE int first_out() const {
    return group_ * kGroupOuts + static_cast<int>(thread_x()) % kGroup / 32 * 16 + lane() / 4;
  }

  // Values that stay the same while it multiplies, so that a stage's addresses take little work.
  // One thread of the group arrives at this block's barriers, one at the other block's.
  RB_DEVICE void begin_reading() {
    const u32 thread = thread_x() % kGroup;
    releases_ = thread == 0 || thread == 32;
    x_full_ = same_in_lanes(shared_address(barriers_.x_full));
    weight_full_ = same_in_lanes(shared_address(barriers_.weight_full));
    weight_empty_ = same_in_lanes(shared_address(barriers_.weight_empty));
    x_empty_ = address_in(shared_address(barriers_.x_empty), block_of_cluster() ^ thread / 32);
    matrix_ = same_in_lanes(static_cast<u32>(matrix_descriptor(shared_address(ring_), 16, 1024)));
  }
  // The descriptor of x's rows; its lower half counts 16 bytes.
  RB_DEVICE static u64 matrix_at(u32 low) {
    return (matrix_descriptor(0, 16, 1024) & ~u64{0xffffffff}) | low;
  }

  RB_DEVICE void load(Lane& lane, int unit) {
    const u32 barrier = static_cast<u32>(8 * weight_.stage);
    wait_phase(weight_full_ + barrier, weight_.parity);
    lane.load(SharedBytes{ring_ + kWeights + weight_.stage * Tile::kBytes}, unit);
    arrive(weight_empty_ + barrier);
    weight_.next();
  }
  RB_DEVICE static void unpack(const Lane& lane, int half, u32 (&a)[kStepProducts][4]) {
#pragma unroll
    for (int i = 0; i < kStepProducts; ++i) lane.step(half * kStepProducts + i, a[i]);
  }
  // Begins a step's products.
  RB_DEVICE void begin(const u32 (&a)[kStepProducts][4], float (&sums)[kSums]) {
    wait_phase(x_full_ + static_cast<u32>(8 * x_.stage), x_.parity);
    const u32 from = matrix_ + static_cast<u32>(x_.stage * (kStepBytes / 16));
    pin(sums);
    warpgroup_begin();
#pragma unroll
    for (int i = 0; i < kStepProducts; ++i) multiply_left<T>(sums, a[i], matrix_at(from + 2 * i));
    warpgroup_commit();
    x_.next();
  }
  // The oldest step of x may be replaced, in both blocks.
  RB_DEVICE void release() {
    if (releases_) arrive_there(x_empty_ + static_cast<u32>(8 * released_.stage));
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

  // A warpgroup's sums that another one waits for: a thread's lie where it reads the others' sums,
  // four at a time.
  RB_DEVICE float4* left_by(u32 cluster) const {
    constexpr u32 kPacks = kSums / 4;
    const u32 group = (2 * cluster + block_of_cluster()) * kProducts + static_cast<u32>(group_);
    return reinterpret_cast<float4*>(p_.partials) + group * kPacks * kGroup + thread_x() % kGroup;
  }
  RB_DEVICE u32* arrival_of(u32 cluster) const {
    return p_.arrivals + (2 * cluster + block_of_cluster()) * kProducts + group_;
  }
  RB_DEVICE void leave(const float (&sums)[kSums]) const {
    float4* to = left_by(cluster_x());
#pragma unroll
    for (int i = 0; i < kSums / 4; ++i) {
      to[i * kGroup] = {sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]};
    }
    named_wait(1 + group_, kGroup);
    if (thread_x() % kGroup == 0) publish(arrival_of(cluster_x()), 1);
  }
  RB_DEVICE void add_others(const PackedWork& work, float (&sums)[kSums]) const {
    const i32 end = work.begin + work.units;
    i32 at = work.begin + work.end;
    for (u32 cluster = cluster_x() + 1; at < end; ++cluster) {
      const i32 next = packed_share(p_, cluster + 1);
      if (next > at) add_left(cluster, sums);
      at = next;
    }
  }
  RB_DEVICE void add_left(u32 cluster, float (&sums)[kSums]) const {
    if (thread_x() % kGroup == 0) {
      u32* arrival = arrival_of(cluster);
      while (published(arrival) == 0) {
      }
      *arrival = 0;
    }
    named_wait(1 + group_, kGroup);
    const float4* from = left_by(cluster);
    constexpr int kAtOnce = kSums > 64 ? 8 : kSums / 4;  // as many as registers allow
#pragma unroll
    for (int first = 0; first < kSums / 4; first += kAtOnce) {
      float4 left[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) left[i] = __ldcg(from + (first + i) * kGroup);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        float* to = sums + 4 * (first + i);
        to[0] += left[i].x;
        to[1] += left[i].y;
        to[2] += left[i].z;
        to[3] += left[i].w;
      }
    }
  }
  // A thread that sees the value sees what the group's threads wrote before their barrier.
  RB_DEVICE static void publish(u32* to, u32 value) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(to)),
                 "r"(value)
                 : "memory");
  }
  RB_DEVICE static u32 published(const u32* from) {
    u32 value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                 : "=r"(value)
                 : "l"(__cvta_generic_to_global(from))
                 : "memory");
    return value;
  }

  RB_DEVICE void store(const PackedWork& work, const float (&sums)[kSums]) const {
    if (work.tile >= p_.few.tiles) return;
    const MatvecPart part = few_part(p_.few, static_cast<u32>(work.tile));
    const i64 out0 = (work.tile - static_cast<i64>(part.first_block)) * kPackedOuts;
    if (p_.few.floats != 0) {
      store_floats(work, part, out0, sums);
    } else {
      store_pairs(work, part, out0, sums);
    }
  }
  RB_DEVICE void store_floats(const PackedWork& work, const MatvecPart& part, i64 out0,
                              const float (&sums)[kSums]) const {
    float* y = static_cast<float*>(part.y);
    const float* bias = static_cast<const float*>(part.bias);
#pragma unroll
    for (int i = 0; i < kSums; ++i) {
      const int row = work.row + i / 4 * 8 + lane() % 4 * 2 + i % 2;
      const i64 out = out0 + first_out() + i / 2 % 2 * 8;
      if (row < p_.few.rows && out < part.outs)
        y[row * part.outs + out] = sums[i] + (bias == nullptr ? 0.0f : bias[out]);
    }
  }
  // Pairs of neighbouring outputs: eight rows by eight outputs are transposed at a time.
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
  // begin_reading(); addresses of the first stage.
  bool releases_;
  u32 x_full_, x_empty_, weight_full_, weight_empty_;
  u32 matrix_;
  RingPlace<kSteps> x_, released_;
  RingPlace<kPackedStages> weight_;
};

template <class Block, class T, int kRows>
RB_DEVICE void gemm_packed(const PackedGemmParams& p) {
  extern __shared__ u8 dynamic[];
  RB_SHARED PackedBarriers barriers;
  const u32 address = shared_address(dynamic);
  PackedGemm<Block, T, kRows> gemm(p, barriers, dynamic + (((address + 1023) & ~1023u) - address));
  open_book<Block, kPackedThreads>(thread_x());  // the cluster's barrier is the block's too
  if (thread_x() == 0) gemm.start();
  cluster_barrier();
  const int group = static_cast<int>(thread_x()) / kGroup;
  if (group == 0) {
    shrink_registers<72>();
    const int warp = static_cast<int>(thread_x()) / 32;
    // Weights are copied meanwhile; the other work waits for x.
    if (thread_x() == 0) {
      wait_for_previous_kernel();
      gemm.fetch_x();
    }
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
  RB_PACKED_GEMM(dtype, Block, f16, f16, 64)    \
  RB_PACKED_GEMM(dtype, Block, f16, f16, 128)   \
  RB_PACKED_GEMM(dtype, Block, f16, f16, 256)   \
  RB_PACKED_GEMM(dtype, Block, bf16, bf16, 64)  \
  RB_PACKED_GEMM(dtype, Block, bf16, bf16, 128) \
  RB_PACKED_GEMM(dtype, Block, bf16, bf16, 256)

}  // namespace gpu
}  // namespace rbee

#else
#define RB_GEMM_PACKED(dtype, Block)
#endif
