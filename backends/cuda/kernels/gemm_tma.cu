// y = x * weight^T + bias on Hopper (sm_90a), of f16 and bf16 and of e4m3 codes with scales; the
// copy engine fetches both operands (tensor_ring.h). Blocks stay and take unit after unit, so that
// the ring fills while they write results. If tiles are few, units share the depth: each writes
// its part of the sums, and few_sum.cu adds them.
//
// e4m3: tensor cores add the 128 products of a step with few bits, so each step's sums are
// scaled and added in f32. x has a scale for each row and step, the weight for each output and
// step; a separate warp fetches the latter ahead. Most checkpoints have one for 128 x 128
// weights, which a step then reads once.
#include "backends/cuda/kernels/tensor_ring.h"
#include "backends/gpu/kernels/gemm_order.h"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

namespace rbee {
namespace gpu {

template <int kTileRows, int kTileOuts, int kMost = kMostStages>
struct GemmTile : TileShape<kTileRows, kTileOuts, kMost> {
  using Shape = TileShape<kTileRows, kTileOuts, kMost>;
  using Shape::kOuts;
  using Shape::kRows;

  int row, out;    // the tile's first ones
  int first, end;  // steps
  int split;

  RB_DEVICE GemmTile(const TensorGemmParams& p, u32 unit, u32 rank) {
    const u32 splits = static_cast<u32>(p.splits);
    split = static_cast<int>(unit % splits);
    const TileNumber pair =
        tile_number(unit / splits, static_cast<u32>(p.down), static_cast<u32>(p.across));
    row = static_cast<int>(p.shares_x ? pair.down : 2 * pair.down + rank) * kRows;
    out = static_cast<int>(p.shares_x ? 2 * pair.across + rank : pair.across) * kOuts;
    first = split * p.steps_of_split;
    end = first + p.steps_of_split < p.steps ? first + p.steps_of_split : p.steps;
  }
};

template <class Tile, class Work>
RB_DEVICE void each_unit(const TensorGemmParams& p, const Work& work) {
  for (u32 unit = cluster_x(); unit < static_cast<u32>(p.units); unit += clusters())
    work(Tile(p, unit, block_of_cluster()));
}

// The thread that asks for tiles. kStep: elements of a step.
template <class Tile, int kStep>
class GemmProducer {
 public:
  RB_DEVICE GemmProducer(const TensorGemmParams& p, RingBarriers& barriers, u32 base)
      : p_(p), barriers_(barriers), base_(base), rank_(block_of_cluster()) {}

  RB_DEVICE void run() {
    each_unit<Tile>(p_, [&](const Tile& tile) {
      if (p_.shares_x) {
        fetch<true>(tile);
      } else {
        fetch<false>(tile);
      }
    });
  }

 private:
  // Each block asks for half of what both tiles read, for both.
  template <bool kSharesX>
  RB_DEVICE void fetch(const Tile& tile) {
    const int half = static_cast<int>(rank_);
    const int row = kSharesX ? half * (Tile::kRows / 2) : 0;
    const int quarter = kSharesX ? 0 : half * 2;
    for (int step = tile.first; step < tile.end; ++step, ring_.next()) {
      u64* full = &barriers_.full[ring_.stage];
      // The ring is empty in the first round, as at the end of the phase before the first.
      wait_phase(&barriers_.empty[ring_.stage], ring_.parity ^ 1);
      arrive_with_bytes(full, Tile::kStageBytes);
      const u32 to = base_ + static_cast<u32>(ring_.stage * Tile::kStageBytes);
      copy_box<kSharesX>(to + static_cast<u32>(row * kSwizzleRow), p_.x, full, step * kStep,
                         tile.row + row, 0, 0);
      copy_box<!kSharesX>(
          to + static_cast<u32>(Tile::kLeftBytes + quarter * (Tile::kOuts / 4) * kSwizzleRow),
          p_.weight, full, step * kStep, tile.out / 4, quarter, 0);
    }
  }

  const TensorGemmParams& p_;
  RingBarriers& barriers_;
  const u32 base_, rank_;
  RingPlace<Tile::kStages> ring_;
};

// Writes a tile's sums.
template <class Tile>
class GemmStore {
 public:
  using Sums = float[Tile::kHalves][Tile::kSums];

  RB_DEVICE GemmStore(const TensorGemmParams& p, int group)
      : p_(p), thread_(group * kGroup + static_cast<int>(thread_x()) % kGroup) {}

  RB_DEVICE void run(const Tile& tile, const Sums& sums) const {
    if (p_.splits > 1) {
      write<float, true>(tile, sums);
    } else if (p_.y_type == 0) {
      write<float, false>(tile, sums);
    } else if (p_.y_type == 1) {
      write<f16, false>(tile, sums);
    } else {
      write<bf16, false>(tile, sums);
    }
  }

 private:
  using Runs = TileRuns<Tile>;

  template <class Y, bool kPart>
  RB_DEVICE void write(const Tile& tile, const Sums& sums) const {
    // Of the tile's first output in row 0.
    const i64 part = (static_cast<i64>(tile.out / Tile::kOuts) * p_.splits + tile.split) * p_.rows;
    Y* const y = kPart ? reinterpret_cast<Y*>(p_.partials + part * Tile::kOuts)
                       : static_cast<Y*>(p_.y) + tile.out;
    const i64 y_row = kPart ? Tile::kOuts : p_.y_row;
#pragma unroll
    for (int i = 0; i < Runs::kRuns; ++i) {
      const int row = tile.row + Runs::row(thread_, i % Runs::kThreadRows);
      const int out = Runs::out(thread_, i);
      if (row >= p_.rows || tile.out + out >= p_.outs) continue;
      float run[Runs::kRun];
      Runs::take(sums, i, run);
      if (!kPart && p_.bias != nullptr) add_bias<Y>(tile.out + out, run);
      store(y + row * y_row + out, run);
    }
  }
  template <class Y>
  RB_DEVICE void add_bias(int out, float (&run)[8]) const {
#pragma unroll
    for (int e = 0; e < 8; ++e) run[e] += load_value(static_cast<const Y*>(p_.bias)[out + e]);
  }
  RB_DEVICE static void store(float* to, const float (&run)[8]) {
    store_four(to, run);
    store_four(to + 4, run + 4);
  }
  template <class Y>
  RB_DEVICE static void store(Y* to, const float (&run)[8]) {
    Pack<Y> result;
#pragma unroll
    for (int e = 0; e < 8; ++e) result.values[e] = store_value<Y>(run[e]);
    store128(to, result);
  }

  const TensorGemmParams& p_;
  const int thread_;  // of both warpgroups
};

// Common to all blocks, whatever they multiply: the ring, and registers that pass from the fetching
// warpgroup to those that multiply. kArrivals: at a full stage.
template <class Tile, u32 kArrivals, int kFetching, int kMultiplying, class Fetch, class Multiply>
RB_DEVICE void run_gemm(const TensorGemmParams& p, RingBarriers& barriers, const Fetch& fetch,
                        const Multiply& multiply) {
  if (thread_x() == 0) {
    prefetch_map(p.x);
    prefetch_map(p.weight);
    start_ring<Tile>(barriers, kArrivals);
  }
  cluster_barrier();
  wait_for_previous_kernel();
  const int group = static_cast<int>(thread_x()) / kGroup;
  if (group == 0) {
    shrink_registers<kFetching>();
    fetch();
    wave_barrier();
  } else {
    grow_registers<kMultiplying>();
    multiply(group - 1);
  }
  // A block must keep its shared memory until the other one no longer writes to it.
  cluster_barrier();
}

template <class T, int kRows, int kOuts>
RB_DEVICE void gemm(const TensorGemmParams& p) {
  using Tile = GemmTile<kRows, kOuts>;
  extern __shared__ u8 dynamic[];
  RB_SHARED RingBarriers barriers;
  const u32 base = (shared_address(dynamic) + 1023) & ~1023u;
  run_gemm<Tile, 1, 40, 232>(
      p, barriers,
      [&] {
        if (thread_x() == 0) GemmProducer<Tile, kStepDepth>(p, barriers, base).run();
      },
      [&](int group) {
        RingReader<Tile> ring(barriers, base, group);
        const GemmStore<Tile> store(p, group);
        each_unit<Tile>(p, [&](const Tile& tile) {
          typename GemmStore<Tile>::Sums sums = {};
          sum_steps<T>(ring, tile.end - tile.first, sums);
          store.run(tile, sums);
        });
      });
}

constexpr int kScaleWarp = 1;  // of the warpgroup that fetches
constexpr int kScaledOuts = 128;
constexpr int kScaledStages = 6;

// A step's scales of the weight, in the order of the right operand's rows.
struct StepScales {
  float of[kScaledOuts];
  float one;  // of all outputs, if they share it
  u32 shared;
};

// The ring of those, beside the operands'.
template <class Tile>
struct ScaleRing {
  StepScales steps[Tile::kStages];
  u64 empty[Tile::kStages];
};

// The warp that fetches scales of the weight: four outputs, one of each quarter, in a lane.
template <class Tile>
class ScaleProducer {
 public:
  RB_DEVICE ScaleProducer(const TensorGemmParams& p, RingBarriers& barriers,
                          ScaleRing<Tile>& scales)
      : p_(p), barriers_(barriers), scales_(scales), lane_(static_cast<int>(thread_x()) % 32) {}

  RB_DEVICE void run(const Tile& tile) {
    Scales now, next;
    load(tile, tile.first, next);
    for (int first = tile.first; first < tile.end; first += kAtOnce) {
#pragma unroll
      for (int b = 0; b < kQuarters; ++b) now[b] = next[b];
      if (first + kAtOnce < tile.end) load(tile, first + kAtOnce, next);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (first + i >= tile.end) break;
        wait_phase(&scales_.empty[ring_.stage], ring_.parity ^ 1);
        const float scale[kQuarters] = {now[0].values[i], now[1].values[i], now[2].values[i],
                                        now[3].values[i]};
        write(scale, scales_.steps[ring_.stage]);
        arrive(&barriers_.full[ring_.stage]);
        ring_.next();
      }
    }
  }

 private:
  static constexpr int kQuarters = 4, kAtOnce = Pack<float>::kCount;  // steps read at once
  using Scales = Pack<float>[kQuarters];

  RB_DEVICE void load(const Tile& tile, int step, Scales& to) const {
#pragma unroll
    for (int b = 0; b < kQuarters; ++b) {
      const int out = tile.out + 4 * lane_ + b;
      const int there = out < p_.outs ? out : p_.outs - 1;
      const u8* row = p_.weight_scales + there * p_.weight_row_bytes;
      to[b] = load128(reinterpret_cast<const float*>(row) + step);
    }
  }
  RB_DEVICE void write(const float (&scale)[kQuarters], StepScales& to) const {
#pragma unroll
    for (int b = 0; b < kQuarters; ++b) to.of[b * (kScaledOuts / kQuarters) + lane_] = scale[b];
    const float first = __shfl_sync(~0u, scale[0], 0);
    const bool same =
        scale[0] == first && scale[1] == first && scale[2] == first && scale[3] == first;
    const u32 shared = __all_sync(~0u, same) != 0 ? 1 : 0;
    if (lane_ == 0) {
      to.one = first;
      to.shared = shared;
    }
  }

  const TensorGemmParams& p_;
  RingBarriers& barriers_;
  ScaleRing<Tile>& scales_;
  const int lane_;
  RingPlace<Tile::kStages> ring_;
};

// A thread's scales of x: for its two rows, one step ahead.
class XScales {
 public:
  RB_DEVICE XScales(const TensorGemmParams& p, int row, int step, int end)
      : from_(p.x_scales + step * p.x_scale_row + row),
        step_(p.x_scale_row),
        left_(end - step),
        there_{row < p.rows, row + 8 < p.rows} {
    load();
  }
  // The step's scales; asks for the next step's.
  RB_DEVICE void take(float (&scales)[2]) {
    scales[0] = next_[0];
    scales[1] = next_[1];
    load();
  }

 private:
  RB_DEVICE void load() {
#pragma unroll
    for (int i = 0; i < 2; ++i) next_[i] = left_ > 0 && there_[i] ? from_[8 * i] : 0.0f;
    from_ += step_;
    --left_;
  }

  const float* from_;
  const i64 step_;
  int left_;
  const bool there_[2];
  float next_[2];
};

// Adds a step's sums, scaled, to the tile's.
template <int kSums>
RB_DEVICE void add_scaled(const float (&step)[kSums], const float (&x)[2], const StepScales& weight,
                          float (&sums)[kSums]) {
  if (weight.shared != 0) {
    const float scale[2] = {x[0] * weight.one, x[1] * weight.one};
#pragma unroll
    for (int i = 0; i < kSums; ++i) sums[i] += step[i] * scale[i / 2 % 2];
    pin(sums);  // the compiler would share the other branch's sums, and copy the scale for each
    return;
  }
  const float* of = weight.of + thread_x() % 4 * 2;
#pragma unroll
  for (int i = 0; i < kSums; i += 4) {
    const float pair[2] = {of[i * 2], of[i * 2 + 1]};
#pragma unroll
    for (int j = 0; j < 4; ++j) sums[i + j] += step[i + j] * (x[j / 2] * pair[j % 2]);
  }
}

// The two warpgroups take turns in multiplying, so that one's products are under way while the
// other scales its sums. Without turns both would do the same at once.
class Turns {
 public:
  RB_DEVICE explicit Turns(int group) : group_(group) {
    if (group_ == 1) pass();
  }
  RB_DEVICE void wait() const { named_wait(kFirstBarrier + group_, kProducts * kGroup); }
  RB_DEVICE void pass() const { named_arrive(kFirstBarrier + 1 - group_, kProducts * kGroup); }
  // After as many turns of both.
  RB_DEVICE void end() const {
    if (group_ == 0) wait();
  }

 private:
  static constexpr int kFirstBarrier = 1;
  const int group_;
};

// A warpgroup that multiplies codes.
template <class Tile>
class ScaledProducts {
 public:
  RB_DEVICE ScaledProducts(const TensorGemmParams& p, RingBarriers& barriers, u32 base,
                           ScaleRing<Tile>& scales, int group)
      : p_(p),
        ring_(barriers, base, group),
        scales_(scales),
        turns_(group),
        thread_(group * kGroup + static_cast<int>(thread_x()) % kGroup) {}

  RB_DEVICE void run(const Tile& tile, float (&sums)[Tile::kSums]) {
    XScales x_scales(p_, tile.row + TileRuns<Tile>::row(thread_, 0), tile.first, tile.end);
    for (int step = tile.first; step < tile.end; ++step) {
      float part[Tile::kSums], x[2];
      ring_.wait();
      turns_.wait();
      multiply(part);
      x_scales.take(x);
      warpgroup_wait<kProductsOfStep - 1>();
      turns_.pass();
      warpgroup_wait<0>();
      pin(part);
      ring_.release();
      const int stage = ring_.stage();
      add_scaled(part, x, scales_.steps[stage], sums);
      arrive(&scales_.empty[stage]);
      ring_.next();
    }
  }
  RB_DEVICE void end() const { turns_.end(); }

 private:
  static constexpr int kProductsOfStep = kSwizzleRow / 32;

  // Each product is a group of its own: the other warpgroup begins after the first has ended.
  RB_DEVICE void multiply(float (&part)[Tile::kSums]) const {
    warpgroup_begin();
#pragma unroll
    for (u32 i = 0; i < kProductsOfStep; ++i) {
      multiply_e4m3(part, ring_.left(0, 32 * i), ring_.right(32 * i), i != 0);
      warpgroup_commit();
    }
  }

  const TensorGemmParams& p_;
  RingReader<Tile> ring_;
  ScaleRing<Tile>& scales_;
  const Turns turns_;
  const int thread_;  // of both warpgroups
};

template <int kRows, int kOuts>
RB_DEVICE void gemm_e4m3(const TensorGemmParams& p) {
  using Tile = GemmTile<kRows, kOuts, kScaledStages>;
  static_assert(kOuts == kScaledOuts && Tile::kHalves == 1, "a step's sums beside the tile's");
  extern __shared__ u8 dynamic[];
  RB_SHARED RingBarriers barriers;
  RB_SHARED ScaleRing<Tile> scales;
  const u32 base = (shared_address(dynamic) + 1023) & ~1023u;
  if (thread_x() == 0) {
    for (u64& empty : scales.empty) start_barrier(&empty, kProducts * kGroup);
  }
  run_gemm<Tile, 1 + 32, 64, 216>(
      p, barriers,
      [&] {
        const u32 warp = thread_x() / 32;
        if (thread_x() == 0) GemmProducer<Tile, kE4m3Group>(p, barriers, base).run();
        if (warp != kScaleWarp) return;
        ScaleProducer<Tile> producer(p, barriers, scales);
        each_unit<Tile>(p, [&](const Tile& tile) { producer.run(tile); });
      },
      [&](int group) {
        ScaledProducts<Tile> products(p, barriers, base, scales, group);
        const GemmStore<Tile> store(p, group);
        each_unit<Tile>(p, [&](const Tile& tile) {
          typename GemmStore<Tile>::Sums sums = {};
          products.run(tile, sums[0]);
          store.run(tile, sums);
        });
        products.end();
      });
}

// Sixteen lanes share a group.
template <class T>
RB_DEVICE void quantize_e4m3(const QuantizeE4m3Params& p) {
  constexpr int kLanes = 16, kEach = kE4m3Group / kLanes;
  const i64 groups = p.in / kE4m3Group, all = p.rows * groups;
  const i64 mine = grid_thread() / kLanes;
  const i64 group = mine < all ? mine : all - 1;  // all lanes of a warp must call it
  const int lane = static_cast<int>(thread_x()) % kLanes;
  const i64 at = group * kE4m3Group + lane * kEach;
  float values[kEach];
  constexpr int kPack = Pack<T>::kCount;
#pragma unroll
  for (int i = 0; i < kEach; i += kPack) {
    const Pack<T> pack = load128(static_cast<const T*>(p.x) + at + i);
#pragma unroll
    for (int j = 0; j < kPack; ++j) values[i + j] = load_value(pack.values[j]);
  }
  // Compared as bits, NaN is the largest, so the scale becomes NaN and with it the product.
  u32 largest = 0;
#pragma unroll
  for (int i = 0; i < kEach; ++i) largest = Max{}(largest, bits_of_float(values[i]) & 0x7fffffffu);
  largest = wave_reduce<32, kLanes>(largest, Max{});
  const float d = float_of_bits(largest) / 448.0f;
  const float inverse = d >= 1e-37f ? 1.0f / d : 0.0f;
  u32 words[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    words[i] = 0;
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const float* pair = values + 4 * i + 2 * j;
      u16 codes;
      asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;"
          : "=h"(codes)
          : "f"(pair[1] * inverse), "f"(pair[0] * inverse));
      words[i] |= static_cast<u32>(codes) << (16 * j);
    }
  }
  if (mine >= all) return;
  *reinterpret_cast<u64*>(p.codes + at) = words[0] | static_cast<u64>(words[1]) << 32;
  if (lane == 0) p.scales[group % groups * p.scale_row + group / groups] = d;
}

#define RB_GEMM(name, ...)                                                                \
  extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(kRingThreads, 1) \
      gemm_##name(const __grid_constant__ TensorGemmParams p) {                           \
    start_next_kernel();                                                                  \
    __VA_ARGS__(p);                                                                       \
  }
#define RB_GEMM_OF(dtype, T)                  \
  RB_GEMM(dtype##_128x128, gemm<T, 128, 128>) \
  RB_GEMM(dtype##_128x256, gemm<T, 128, 256>) \
  RB_GEMM(dtype##_256x128, gemm<T, 256, 128>)
RB_GEMM_OF(f16, f16)
RB_GEMM_OF(bf16, bf16)
RB_GEMM(f8e4m3_128x128, gemm_e4m3<128, 128>)

#define RB_QUANTIZE(dtype, T) \
  RB_KERNEL(quantize_e4m3_##dtype, kQuantizeE4m3Threads, QuantizeE4m3Params, quantize_e4m3<T>(p))
RB_EACH_FLOAT(RB_QUANTIZE)

}  // namespace gpu
}  // namespace rbee

#endif
