#pragma once
// Linear layers of one row of x on Hopper, like gpu/kernels/matvec_one.h, except that the copy
// engine fetches 32 rows of weights at a time into a ring of stages, and tensor cores multiply them
// (PTX ISA 8.x, section 9.7.14.5): matvec_one_tma_integers.h, matvec_one_tma_floats.h. Each of them
// defines
// Stage                    what a stage has of a row, as PackedStage
// kBookBytes               of shared memory in front of the stages
// stage_x<T>(p, to)        puts x of type T into shared memory; the multiplying threads call it
// begin(), add(), end()    sum up the rows of a tile
#include "backends/cuda/kernels/one_book.h"
#include "backends/cuda/kernels/tensor_copies.h"
#include "backends/gpu/kernels/matvec_one_groups.h"
#include "backends/gpu/kernels/matvec_one_x.h"
#include "backends/shared/tensor_one_params.h"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

namespace rbee {
namespace gpu {

// Tiles whose sums are written but not yet added up.
constexpr int kOneHeld = 2;
constexpr int kOneRowLanes = 8;  // of a warp, that write the sums

struct OneBarriers {
  u64 full[kOneMostStages], empty[kOneMostStages];
  u64 summed[kOneHeld], written[kOneHeld];
};

// A place in a ring of `count`, and the parity of its rounds, which is that of a phase.
struct OnePlaceInRing {
  int at = 0;
  u32 parity = 0;
  RB_DEVICE void next(int count) {
    if (++at < count) return;
    at = 0;
    parity ^= 1;
  }
};

// The layout of stages in shared memory: planes one after another, rows within. S: PackedStage, or
// PlainStage.
template <class S>
struct StagePlanes {
  static constexpr int kRows = 2 * kOneTileGroups;
  static constexpr int kScaleRow = to_16(S::kScale), kSuperRow = to_16(S::kSuper);
  static constexpr int kHigh = kRows * S::kLow;
  static constexpr int kScale = kHigh + kRows * S::kHigh;
  static constexpr int kSuper = kScale + kRows * kScaleRow;
  static constexpr int kBytes = kRows * S::kBytes;
};

// One lane of the fetching warp.
template <class S>
RB_DEVICE void fetch_stages(const TensorOneParams& p, OneBarriers& barriers, u32 ring) {
  const OneGroups<AnyResult> groups(p.one);
  using Planes = StagePlanes<S>;
  constexpr int kWord = 2;  // of the maps
  const u64 once = read_once_policy();
  i32 early = p.early;
  OnePlaceInRing stage;
  for (i32 tile = static_cast<i32>(block_x()); tile < p.tiles; tile += blocks_x()) {
    const OnePlace place = groups.place_of(tile * kOneTileGroups);
    // 16 rows each: the first rows of the groups and the second ones, or neighbours.
    const bool gated = p.one.gate != 0;
    const i32 second = place.step == 1 ? place.out + kOneTileGroups : place.out + place.step;
    const TensorMap* first_maps = p.maps[place.index];
    const TensorMap* second_maps = p.maps[gated ? 1 : place.index];
    for (i32 step = 0; step < p.steps; ++step) {
      wait_phase(&barriers.empty[stage.at], stage.parity ^ 1);
      if (early-- == 0) wait_for_previous_kernel();
      u64* full = &barriers.full[stage.at];
      arrive_with_bytes(full, Planes::kBytes);
      const u32 to = ring + static_cast<u32>(stage.at * Planes::kBytes);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const TensorMap* maps = half == 0 ? first_maps : second_maps;
        const i32 row = half == 0 ? place.out : second;
        const int at = half * kOneTileGroups;
        const auto copy = [&](int plane, int base, int row_bytes, int step_bytes) {
          const u32 there = to + base + at * row_bytes;
          const int word = (step * step_bytes & ~15) / kWord;
          // Stages have less than a line of the other rows.
          if (plane < 2) return copy_box(there, maps[plane], full, word, row, once);
          copy_box<false>(there, maps[plane], full, word, row, 0, 0);
        };
        if (S::kLow > 0) copy(0, 0, S::kLow, S::kLow);
        if (S::kHigh > 0) copy(1, Planes::kHigh, S::kHigh, S::kHigh);
        if (S::kScale > 0) copy(2, Planes::kScale, Planes::kScaleRow, S::kScale);
        if (S::kSuper > 0) copy(3, Planes::kSuper, Planes::kSuperRow, S::kSuper);
      }
      stage.next(p.stages);
    }
  }
}

// Named barriers: after kStart all barriers can be waited for; after kInput x is in its place.
// At kSquares only the warp that writes waits, whose own start may take longer.
enum { kInput = 1, kStart = 2, kSquares = 3 };
using OneSquares = NormSquares<32, kOneConsumers>;

// Waits until the kernels in front have written x. Another launch of the same product lets this one
// begin only once it has x (write_tiles()). This one waits for that launch's end at its own, so a
// kernel that waits for this one has waited for both.
RB_DEVICE void wait_for_x(const TensorOneParams& p) {
  if (p.after_another == 0) wait_for_previous_kernel();
}

// 16 bytes as other multiprocessors wrote them: after another launch no kernel's end has emptied
// the first-level cache.
RB_DEVICE void load_of_device(const u32* from, u32* words) {
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "l"(from)
               : "memory");
}

// x of type T and the norm's weight as the multiplying threads read them: runs of 8. One type's
// code alone: every kernel of a layer waits for it, and the device must fetch instructions, too.
template <class T>
class OneInput {
 public:
  RB_DEVICE explicit OneInput(const MatvecOneParams& p)
      : p_(p), filled_(p.in / kXRun), thread_(static_cast<i32>(thread_x())) {
    if (p.norm_weight != nullptr) load(p.norm_weight, 0, weight_);
  }

  // Calls put(run, values) as XRuns::each() does; returns its result.
  template <class Put>
  RB_DEVICE float each(i32 runs, const Put& put) {
    const bool norm = p_.norm_weight != nullptr;
    load(p_.x, 0, x_);
    float squares = 0;
    int left = kAhead;
#pragma unroll 1
    for (i32 first = 0; first < runs; first += kOneConsumers) {
      if (left == 0) {
        load(p_.x, first, x_);
        if (norm) load(p_.norm_weight, first, weight_);
        left = kAhead;
      }
      float values[kXRun];
#pragma unroll
      for (int i = 0; i < kXRun; ++i) values[i] = load_value(element<T>(x_[0].words, i));
      if (norm) {
#pragma unroll
        for (int i = 0; i < kXRun; ++i) {
          squares = fma(values[i], values[i], squares);
          values[i] *= load_value(element<T>(weight_[0].words, i));
        }
      }
      put(first + thread_, values);
#pragma unroll
      for (int k = 0; k + 1 < kAhead; ++k) {
        x_[k] = x_[k + 1];
        weight_[k] = weight_[k + 1];
      }
      --left;
    }
    return squares;
  }

 private:
  static constexpr int kAhead = 8 / sizeof(T);  // runs under way
  struct alignas(16) Eight {
    u32 words[kXRun * sizeof(T) / 4];
  };

  RB_DEVICE void load(const void* from, i32 first, Eight (&to)[kAhead]) const {
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      const i32 run = first + k * kOneConsumers + thread_;
      to[k] = Eight{};
      if (run >= filled_) continue;
      const Eight& eight = static_cast<const Eight*>(from)[run];
#pragma unroll
      for (int word = 0; word < kXRun * static_cast<int>(sizeof(T)) / 4; word += 4) {
        load_of_device(eight.words + word, to[k].words + word);
      }
    }
  }

  const MatvecOneParams& p_;
  const i32 filled_, thread_;
  Eight x_[kAhead], weight_[kAhead] = {};
};

// After x is in its place; passes on the thread's sum of its squares.
RB_DEVICE void leave_squares(const TensorOneParams& p, float squares) {
  OneSquares::leave(p.one, squares);
  named_arrive(kSquares, kOneConsumers + 32);
  named_wait(kInput, kOneConsumers);
}

// The sums of a tile's rows by octets of pieces, one for each warp that has the row.
constexpr int kOneOctets = kOnePieces / 8;
struct OneSums {
  float of[kOneOctets][2 * kOneTileGroups];
};

// A warp that multiplies.
template <class Products, class T>
RB_DEVICE void sum_tiles(const TensorOneParams& p, OneBarriers& barriers, u8* ring,
                         OneSums (&tiles)[kOneHeld]) {
  constexpr int kBytes = StagePlanes<typename Products::Stage>::kBytes;
  u8* x = ring + p.stages * kBytes;
  leave_squares(p, Products::template stage_x<T>(p, x));
  Products products(p, x);
  const bool leads = thread_x() % 32 == 0;
  OnePlaceInRing stage, held;
  for (i32 tile = static_cast<i32>(block_x()); tile < p.tiles; tile += blocks_x()) {
    products.begin();
    for (i32 step = 0; step < p.steps; ++step) {
      wait_phase(&barriers.full[stage.at], stage.parity);
      products.add(ring + stage.at * kBytes, step, [&] {
        wave_barrier();
        if (leads) arrive(&barriers.empty[stage.at]);
      });
      stage.next(p.stages);
    }
    wait_phase(&barriers.written[held.at], held.parity ^ 1);
    products.end([&](int octet, int row, float sum) { tiles[held.at].of[octet][row] = sum; },
                 [&] { arrive(&barriers.summed[held.at]); });
    held.next(kOneHeld);
  }
}

// The warp that adds up and writes. It asks for its other inputs while other warps multiply. Lanes
// g and g + 16 have the results of group g of a tile. Neighbouring rows lie so in a stage, other
// rows in two halves.
template <class T>
RB_DEVICE void write_tiles(const TensorOneParams& p, OneBarriers& barriers,
                           const OneSums (&tiles)[kOneHeld]) {
  OneGroups<OneResult<T>, OwnHeadPlaces> groups(p.one);
  groups.ask();
  const int lane = static_cast<int>(thread_x()) % 32;
  const int of_tile = lane % kOneTileGroups, row = lane / kOneTileGroups;
  i32 tile = static_cast<i32>(block_x());
  const auto group_of = [&](i32 some) { return some * kOneTileGroups + of_tile; };
  OneTarget target = groups.target(group_of(tile), row);
  wait_for_x(p);
  if (p.before_another != 0) start_next_kernel();
  named_wait(kSquares, kOneConsumers + 32);
  const float factor = OneSquares::factor(p.one);
  OnePlaceInRing held;
  for (; tile < p.tiles; tile += blocks_x()) {
    const i32 group = group_of(tile);
    groups.complete(target, row);
    const bool neighbours = p.one.gate == 0 && groups.place_of(group).step == 1;
    const int place = neighbours ? 2 * of_tile + row : lane;
    wait_phase(&barriers.summed[held.at], held.parity);
    float sum = 0;
#pragma unroll
    for (int octet = 0; octet < kOneOctets; ++octet) sum += tiles[held.at].of[octet][place];
    arrive(&barriers.written[held.at]);
    sum *= factor;
    const float other = shuffle_xor<32>(sum, kOneTileGroups);
    groups.put(target, sum, other);
    target = groups.target(group_of(tile + static_cast<i32>(blocks_x())), row);
    held.next(kOneHeld);
  }
  if (p.after_another != 0) wait_for_previous_kernel();
}

RB_DEVICE void start_barriers(OneBarriers& barriers, int stages) {
  for (int i = 0; i < stages; ++i) {
    start_barrier(&barriers.full[i], 1);
    start_barrier(&barriers.empty[i], kOneWarps);
  }
  for (int i = 0; i < kOneHeld; ++i) {
    start_barrier(&barriers.summed[i], kOneWarps * kOneRowLanes);
    start_barrier(&barriers.written[i], 32);
  }
  publish_barriers();
}

template <class Products, class T>
RB_DEVICE void matvec_one_tma(const TensorOneParams& p) {
  if (p.before_another == 0) start_next_kernel();
  RB_SHARED OneBarriers barriers;
  RB_SHARED OneSums tiles[kOneHeld];
  u8* ring = one_shared() + Products::kBookBytes;
  const int warp = static_cast<int>(thread_x()) / 32;
  if (warp == kOneWarps) {
    const bool leads = thread_x() % 32 == 0;
    if (leads) start_barriers(barriers, p.stages);
    wave_barrier();
    named_arrive(kStart, kOneTensorThreads);
    if (leads) fetch_stages<typename Products::Stage>(p, barriers, shared_address(ring));
    return;
  }
  named_wait(kStart, kOneTensorThreads);
  if (warp < kOneWarps) return sum_tiles<Products, T>(p, barriers, ring, tiles);
  write_tiles<T>(p, barriers, tiles);
}

// RB_KERNEL_AHEAD, except that the kernel itself lets the next one begin.
#define RB_ONE_TMA(x, X, dtype, Products)                                       \
  extern "C" __global__ void __launch_bounds__(kOneTensorThreads, 1)            \
      matvec_one_tma_##x##_##dtype(const __grid_constant__ TensorOneParams p) { \
    matvec_one_tma<Products, X>(p);                                             \
  }
#define RB_MATVEC_ONE_TMA(dtype, Products) \
  RB_ONE_TMA(f32, float, dtype, Products)  \
  RB_ONE_TMA(f16, f16, dtype, Products)    \
  RB_ONE_TMA(bf16, bf16, dtype, Products)

}  // namespace gpu
}  // namespace rbee

#else
#define RB_MATVEC_ONE_TMA(dtype, Products)
#endif
