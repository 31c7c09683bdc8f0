// Convolutions of images with the channels last in f16 and bf16 on Hopper (sm_90a), without a copy
// of the patches. Steps are 64 channels of a tap: the copy engine fetches a column of pixels by an
// im2col map, zeros where the padding is, and the filters beside it, into a ring that one thread
// keeps full. Two warpgroups multiply. A cluster of two blocks shares what is common to its tiles,
// which halves that part's way through the second-level cache. Blocks stay and take unit after
// unit, so that the ring fills while results are written. Small images share the depth out to more
// units.
#include "backends/cuda/kernels/image_store.h"
#include "backends/cuda/kernels/tensor_copies.h"
#include "backends/cuda/kernels/wgmma_rows.h"
#include "backends/gpu/kernels/gemm_order.h"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

namespace rbee {
namespace gpu {

constexpr int kProducts = 2;  // warpgroups that multiply
constexpr int kConvThreads = (kProducts + 1) * kGroup;
constexpr int kRingBytes = 225 * 1024;
constexpr int kMostStages = 7;

struct ConvBarriers {
  u64 full[kMostStages], empty[kMostStages];
};

template <int kTileRows, int kOuts>
struct ConvTile {
  static constexpr int kRows = kTileRows;
  static constexpr int kPartRows = kRows / kProducts;  // of a warpgroup
  static constexpr int kPixelBytes = kRows * kSwizzleRow;
  static constexpr int kStageBytes = kPixelBytes + kOuts * kSwizzleRow;
  static constexpr int kFit = kRingBytes / kStageBytes;
  static constexpr int kStages = kFit < kMostStages ? kFit : kMostStages;

  int row, out;             // the tile's first pixel, among those of its class, and filter
  int odd_row, odd_column;  // the class: which outputs of an enlarged image
  int first, end;           // steps
  int split;

  RB_DEVICE ConvTile(const TensorConvParams& p, u32 unit, u32 rank) {
    const u32 splits = static_cast<u32>(p.conv.splits), classes = static_cast<u32>(p.classes);
    split = static_cast<int>(unit % splits);
    const u32 of_class = unit / splits % classes;
    odd_row = static_cast<int>(of_class / 2);
    odd_column = static_cast<int>(of_class % 2);
    const TileNumber pair =
        tile_number(unit / splits / classes, static_cast<u32>(p.down), static_cast<u32>(p.across));
    row = static_cast<int>(p.shares_pixels ? pair.down : 2 * pair.down + rank) * kRows;
    out = static_cast<int>(p.shares_pixels ? 2 * pair.across + rank : pair.across) * kOuts;
    first = split * p.steps_of_split;
    end = first + p.steps_of_split < p.steps ? first + p.steps_of_split : p.steps;
  }
};

// A place in the ring and how often it has gone round, as the parity of a phase.
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

// The thread that asks for tiles.
template <class Tile, int kOuts>
class ConvProducer {
 public:
  RB_DEVICE ConvProducer(const TensorConvParams& p, ConvBarriers& barriers, u32 base)
      : p_(p), barriers_(barriers), base_(base), rank_(block_of_cluster()) {}

  RB_DEVICE void run() {
    for (u32 unit = cluster_x(); unit < static_cast<u32>(p_.units); unit += clusters()) {
      const Tile tile(p_, unit, rank_);
      if (p_.shares_pixels) {
        fetch<true>(tile);
      } else {
        fetch<false>(tile);
      }
    }
  }

 private:
  RB_DEVICE PixelPlace place_of(int row) const {
    const int line = row / p_.width, image = line / p_.height;
    return PixelPlace{(row - line * p_.width) * p_.conv.stride + p_.first_tap[1],
                      (line - image * p_.height) * p_.conv.stride + p_.first_tap[0], image};
  }
  // How far the pixel under a tap is from the one under tap 0 of class 0, along an axis.
  RB_DEVICE u16 tap_offset(int tap, int odd, int axis) const {
    if (p_.conv.enlarged == 0) return static_cast<u16>(tap);
    return static_cast<u16>(((odd + tap - p_.conv.padding[axis]) >> 1) - p_.first_tap[axis]);
  }
  // What both tiles read, each block asks for half of, for both.
  template <bool kSharesPixels>
  RB_DEVICE void fetch(const Tile& tile) {
    const int half = static_cast<int>(rank_);
    const int row = kSharesPixels ? half * (Tile::kRows / 2) : 0;
    const int out = kSharesPixels ? 0 : half * (kOuts / 2);
    const PixelPlace from = place_of(tile.row + row);
    int tap = tile.first / p_.chunks;
    int channel = (tile.first - tap * p_.chunks) * kStepDepth;
    int tap_row = tap / p_.conv.kernel_w, tap_column = tap - tap_row * p_.conv.kernel_w;
    for (int step = tile.first; step < tile.end; ++step, ring_.next()) {
      u64* full = &barriers_.full[ring_.stage];
      // The first round finds the ring empty: that is the end of the phase before the first.
      wait_phase(&barriers_.empty[ring_.stage], ring_.parity ^ 1);
      arrive_with_bytes(full, Tile::kStageBytes);
      const u32 to = base_ + static_cast<u32>(ring_.stage * Tile::kStageBytes);
      copy_pixels<kSharesPixels>(to + static_cast<u32>(row * kSwizzleRow), p_.pixels, full, channel,
                                 from, tap_offset(tap_column, tile.odd_column, 1),
                                 tap_offset(tap_row, tile.odd_row, 0));
      copy_box<!kSharesPixels>(to + static_cast<u32>(Tile::kPixelBytes + out * kSwizzleRow),
                               p_.filters, full, channel, tile.out / 4, out / (kOuts / 4), tap);
      channel += kStepDepth;
      if (channel < p_.conv.channels) continue;
      channel = 0;
      ++tap;
      if (++tap_column < p_.conv.kernel_w) continue;
      tap_column = 0;
      ++tap_row;
    }
  }

  const TensorConvParams& p_;
  ConvBarriers& barriers_;
  const u32 base_, rank_;
  RingPlace<Tile::kStages> ring_;
};

// A warpgroup that multiplies its half of a tile's pixels.
template <class T, class Tile, int kOuts>
class ConvConsumer {
 public:
  RB_DEVICE ConvConsumer(const TensorConvParams& p, ConvBarriers& barriers, u32 base, int group)
      : p_(p),
        barriers_(barriers),
        base_(base + static_cast<u32>(group * Tile::kPartRows * kSwizzleRow)),
        filters_(base + Tile::kPixelBytes),
        rank_(block_of_cluster()),
        row_(group * Tile::kPartRows + static_cast<int>(thread_x()) % kGroup / 32 * 16 +
             static_cast<int>(thread_x()) % 32 / 4) {}

  RB_DEVICE void run() {
    for (u32 unit = cluster_x(); unit < static_cast<u32>(p_.units); unit += clusters()) {
      const Tile tile(p_, unit, rank_);
      float sums[kHalves][kOuts / 2] = {};
      for (int step = tile.first; step < tile.end; ++step) {
        wait_phase(&barriers_.full[ring_.stage], ring_.parity);
        start_products(sums);
        if (step > tile.first) {
          warpgroup_wait<1>();  // the step before
          release();
        }
        ring_.next();
      }
      warpgroup_wait<0>();
      release();
#pragma unroll
      for (int half = 0; half < kHalves; ++half) pin(sums[half]);
      store(tile, sums);
    }
  }

 private:
  static constexpr int kHalves = Tile::kPartRows / kGroupRows;

  RB_DEVICE void start_products(float (&sums)[kHalves][kOuts / 2]) const {
    const u32 stage = static_cast<u32>(ring_.stage * Tile::kStageBytes);
#pragma unroll
    for (int half = 0; half < kHalves; ++half) pin(sums[half]);
    warpgroup_begin();
#pragma unroll
    for (u32 k = 0; k < kStepDepth; k += 16) {
#pragma unroll
      for (int half = 0; half < kHalves; ++half) {
        const u32 pixels = base_ + stage + static_cast<u32>(half * kGroupRows * kSwizzleRow);
        multiply_rows<T>(sums[half], matrix_descriptor(pixels + 2 * k, 16, 1024),
                         matrix_descriptor(filters_ + stage + 2 * k, 16, 1024));
      }
    }
    warpgroup_commit();
  }
  // The oldest stage may be filled again, as far as this warpgroup is concerned: by either block,
  // since both write to it. Products end for all warps of the group at once.
  RB_DEVICE void release() {
    u64* empty = &barriers_.empty[released_.stage];
    const u32 thread = thread_x() % kGroup;
    if (thread == 0) arrive(empty);
    if (thread == 32) arrive_at(empty, rank_ ^ 1);
    released_.next();
  }

  // The number of an output pixel, of those of its class.
  RB_DEVICE int output_pixel(const Tile& tile, int row) const {
    if (p_.conv.enlarged == 0) return row;
    const int line = row / p_.width, column = row - line * p_.width;
    return (2 * line + tile.odd_row) * 2 * p_.width + 2 * column + tile.odd_column;
  }
  // Rows of results that this thread has, eight apart.
  static constexpr int kThreadRows = 2 * kHalves;
  struct Rows {
    int pixels[kThreadRows];  // negative: none
  };

  RB_DEVICE void store(const Tile& tile, const float (&sums)[kHalves][kOuts / 2]) const {
    Rows rows;
#pragma unroll
    for (int i = 0; i < kThreadRows; ++i) {
      const int row = tile.row + row_ + i / 2 * kGroupRows + i % 2 * 8;
      rows.pixels[i] = row < p_.rows ? output_pixel(tile, row) : -1;
    }
    if (p_.conv.partials != nullptr) {
      store_partials(tile, rows, sums);
    } else {
      store_results(tile, rows, sums);
    }
  }
  RB_DEVICE void store_partials(const Tile& tile, const Rows& rows,
                                const float (&sums)[kHalves][kOuts / 2]) const {
#pragma unroll
    for (int i = 0; i < kRuns; ++i) {
      const int out = run_out(tile, i), pixel = rows.pixels[i % kThreadRows];
      if (out >= p_.conv.partial_outs || pixel < 0) continue;
      float run[kRun];
      take_run(sums, i, run);
      const i64 row = static_cast<i64>(tile.split) * p_.conv.pixels + pixel;
      float* to = p_.conv.partials + row * p_.conv.partial_outs + out;
#pragma unroll
      for (int e = 0; e < kRun; e += 4)
        store128(to + e, Pack<float>{{run[e], run[e + 1], run[e + 2], run[e + 3]}});
    }
  }

  // What a lane writes at once: eight neighbours of a pixel, four times two of its sums, whose
  // filters 4 i + b lie in the tile's quarter b.
  static constexpr int kRun = 8, kRunsOfRow = kOuts / (4 * kRun);
  // In the order in which they are written: those of a row's 32 columns, of each row.
  static constexpr int kRuns = kRunsOfRow * kThreadRows;
  RB_DEVICE static int run_out(const Tile& tile, int i) {
    return tile.out + (i / kThreadRows * 4 + static_cast<int>(thread_x()) % 4) * kRun;
  }
  RB_DEVICE static void take_run(const float (&sums)[kHalves][kOuts / 2], int i,
                                 float (&run)[kRun]) {
    const int row = i % kThreadRows, columns = i / kThreadRows;
#pragma unroll
    for (int e = 0; e < 2; ++e) {
#pragma unroll
      for (int b = 0; b < 4; ++b)
        run[4 * e + b] = sums[row / 2][(b * kRunsOfRow + columns) * 4 + row % 2 * 2 + e];
    }
  }
  RB_DEVICE static Pack<T> load_run(const void* row, i64 at) {
    return load128(static_cast<const T*>(row) + at);
  }
  RB_DEVICE static void add_run(const Pack<T>& from, float (&sums)[kRun]) {
#pragma unroll
    for (int e = 0; e < kRun; ++e) sums[e] += load_value(from.values[e]);
  }
  static constexpr int kAhead = kHalves == 1 ? 6 : 3;  // runs whose residual is under way
  RB_DEVICE void load_residual(const Tile& tile, const Rows& rows, int i,
                               Pack<T> (&into)[kAhead]) const {
    const int out = run_out(tile, i), pixel = rows.pixels[i % kThreadRows];
    if (p_.conv.residual == nullptr || out >= p_.conv.outs || pixel < 0) return;
    into[i % kAhead] = load_run(p_.conv.residual, static_cast<i64>(pixel) * p_.conv.outs + out);
  }
  RB_DEVICE void store_results(const Tile& tile, const Rows& rows,
                               const float (&sums)[kHalves][kOuts / 2]) const {
    const ImageConvParams& p = p_.conv;
    Pack<T> residual[kAhead], bias;
#pragma unroll
    for (int i = 0; i < kAhead; ++i) load_residual(tile, rows, i, residual);
#pragma unroll
    for (int i = 0; i < kRuns; ++i) {
      const int out = run_out(tile, i), pixel = rows.pixels[i % kThreadRows];
      if (i % kThreadRows == 0 && p.bias != nullptr && out < p.outs) bias = load_run(p.bias, out);
      if (out < p.outs && pixel >= 0) {
        float run[kRun];
        take_run(sums, i, run);
        if (p.bias != nullptr) add_run(bias, run);
        if (p.channel_add != nullptr) {
          const i64 image = divide(static_cast<u32>(pixel), p.out_pixels);
          add_run(load_run(p.channel_add, image * p.outs + out), run);
        }
        if (p.residual != nullptr) add_run(residual[i % kAhead], run);
        Pack<T> result;
#pragma unroll
        for (int e = 0; e < kRun; ++e) result.values[e] = store_value<T>(run[e]);
        store128(static_cast<T*>(p.y) + static_cast<i64>(pixel) * p.outs + out, result);
      }
      if (i + kAhead < kRuns) load_residual(tile, rows, i + kAhead, residual);
    }
  }

  const TensorConvParams& p_;
  ConvBarriers& barriers_;
  const u32 base_, filters_;  // this warpgroup's pixels and the filters in the first stage
  const u32 rank_;
  const int row_;  // of the tile: this thread's first
  RingPlace<Tile::kStages> ring_, released_;
};

template <class T, int kRows, int kOuts>
RB_DEVICE void image_conv(const TensorConvParams& p) {
  using Tile = ConvTile<kRows, kOuts>;
  extern __shared__ u8 dynamic[];
  RB_SHARED ConvBarriers barriers;
  const u32 base = (shared_address(dynamic) + 1023) & ~1023u;
  if (thread_x() == 0) {
    prefetch_map(p.pixels);
    prefetch_map(p.filters);
    for (int i = 0; i < Tile::kStages; ++i) {
      start_barrier(&barriers.full[i], 1);
      start_barrier(&barriers.empty[i], 2 * kProducts);
    }
    publish_barriers();
  }
  cluster_barrier();
  wait_for_previous_kernel();
  const int group = static_cast<int>(thread_x()) / kGroup;
  if (group == 0) {
    shrink_registers<40>();
    if (thread_x() == 0) ConvProducer<Tile, kOuts>(p, barriers, base).run();
    wave_barrier();
  } else {
    grow_registers<232>();
    ConvConsumer<T, Tile, kOuts>(p, barriers, base, group - 1).run();
  }
  // A block's shared memory stays until the other one no longer writes to it.
  cluster_barrier();
}

// Joins the units' parts of the depth: two outputs of a pixel a thread.
template <class T>
RB_DEVICE void image_conv_join(const ImageConvParams& p) {
  const i64 at = 2 * grid_thread();
  const i64 count = static_cast<i64>(p.pixels) * p.partial_outs;
  if (at >= count) return;
  float sums[2] = {};
  for (int split = 0; split < p.splits; ++split)
    add_pair<float>(p.partials, split * count + at, sums);
  store_outputs<T>(p, static_cast<int>(at / p.partial_outs), static_cast<int>(at % p.partial_outs),
                   sums[0], sums[1]);
}

#define RB_TILE(dtype, T, rows, outs)                                                     \
  extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(kConvThreads, 1) \
      image_conv_##dtype##_##rows##x##outs(const __grid_constant__ TensorConvParams p) {  \
    start_next_kernel();                                                                  \
    image_conv<T, rows, outs>(p);                                                         \
  }
#define RB_CONV(dtype, T)     \
  RB_TILE(dtype, T, 128, 128) \
  RB_TILE(dtype, T, 128, 160) \
  RB_TILE(dtype, T, 128, 256) \
  RB_TILE(dtype, T, 256, 128) \
  RB_TILE(dtype, T, 256, 160) \
  RB_KERNEL(image_conv_##dtype##_join, 256, ImageConvParams, (image_conv_join<T>(p)))
RB_CONV(f16, f16)
RB_CONV(bf16, bf16)

}  // namespace gpu
}  // namespace rbee

#endif
