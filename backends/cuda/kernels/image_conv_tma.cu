// Convolutions of images with the channels last in f16 and bf16 on Hopper (sm_90a), without a copy
// of the patches. Steps are 64 channels of a tap. The copy engine fetches a column of pixels by an
// im2col map, with zeros for the padding, and the filters beside it, into a ring that one thread
// keeps full. Two warpgroups multiply. A cluster of two blocks shares what its tiles have in
// common, which halves its traffic through the second-level cache. Blocks stay and take unit after
// unit, so that the ring fills while they write results. For small images several units share the
// depth of a tile.
#include "backends/cuda/kernels/image_store.h"
#include "backends/cuda/kernels/tensor_ring.h"
#include "backends/gpu/kernels/gemm_order.h"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

namespace rbee {
namespace gpu {

template <int kTileRows, int kTileOuts>
struct ConvTile : TileShape<kTileRows, kTileOuts> {
  using Shape = TileShape<kTileRows, kTileOuts>;
  using Shape::kOuts;
  using Shape::kRows;

  int row, out;             // the tile's first pixel, among those of its class, and filter
  int odd_row, odd_column;  // the class: which outputs of an enlarged image
  int first, end;           // steps
  i64 number;               // of the tile and its part of the depth

  RB_DEVICE ConvTile(const TensorConvParams& p, u32 unit, u32 rank) {
    const u32 splits = static_cast<u32>(p.splits), classes = static_cast<u32>(p.classes);
    const int split = static_cast<int>(unit % splits);
    const u32 of_class = unit / splits % classes;
    odd_row = static_cast<int>(of_class / 2);
    odd_column = static_cast<int>(of_class % 2);
    const TileNumber pair =
        tile_number(unit / splits / classes, static_cast<u32>(p.down), static_cast<u32>(p.across));
    row = static_cast<int>(p.shares_pixels ? pair.down : 2 * pair.down + rank) * kRows;
    out = static_cast<int>(p.shares_pixels ? 2 * pair.across + rank : pair.across) * kOuts;
    first = split * p.steps_of_split;
    end = first + p.steps_of_split < p.steps ? first + p.steps_of_split : p.steps;
    number = 2 * static_cast<i64>(unit) + rank;
  }
};

// A thread's results, as pixels.
template <class Tile>
struct ConvRuns : TileRuns<Tile> {
  using Runs = TileRuns<Tile>;

  const TensorConvParams& p;
  int thread;  // of both warpgroups

  RB_DEVICE ConvRuns(const TensorConvParams& params, int of) : p(params), thread(of) {}

  // Among the pixels of the tile's class; negative: none.
  RB_DEVICE int pixel(const Tile& tile, int thread_row) const {
    const int row = tile.row + Runs::row(thread, thread_row);
    if (row >= p.rows) return -1;
    if (p.conv.enlarged == 0) return row;
    const int line = row / p.width, column = row - line * p.width;
    return (2 * line + tile.odd_row) * 2 * p.width + 2 * column + tile.odd_column;
  }
  RB_DEVICE int out(const Tile& tile, int i) const { return tile.out + Runs::out(thread, i); }
  // The place of the thread's sums of a part of the depth: four of run 0; the next four are
  // part_step() further on. A warp's accesses are adjacent.
  RB_DEVICE float* part(const Tile& tile) const {
    const int lane = thread / 4 * p.part_lanes + thread % 4;
    return p.partials + tile.number * p.part_runs * 2 * part_step() + 4 * lane;
  }
  RB_DEVICE int part_step() const { return kProducts * kGroup * p.part_lanes; }
};

// The thread that asks for tiles.
template <class Tile>
class ConvProducer {
 public:
  RB_DEVICE ConvProducer(const TensorConvParams& p, RingBarriers& barriers, u32 base)
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
  // Each block asks for half of what both tiles read, for both.
  template <bool kSharesPixels>
  RB_DEVICE void fetch(const Tile& tile) {
    const int half = static_cast<int>(rank_);
    const int row = kSharesPixels ? half * (Tile::kRows / 2) : 0;
    const int out = kSharesPixels ? 0 : half * (Tile::kOuts / 2);
    const PixelPlace from = place_of(tile.row + row);
    int tap = tile.first / p_.chunks;
    int channel = (tile.first - tap * p_.chunks) * kStepDepth;
    int tap_row = tap / p_.conv.kernel_w, tap_column = tap - tap_row * p_.conv.kernel_w;
    for (int step = tile.first; step < tile.end; ++step, ring_.next()) {
      u64* full = &barriers_.full[ring_.stage];
      // The ring is empty in the first round, as at the end of the phase before the first.
      wait_phase(&barriers_.empty[ring_.stage], ring_.parity ^ 1);
      arrive_with_bytes(full, Tile::kStageBytes);
      const u32 to = base_ + static_cast<u32>(ring_.stage * Tile::kStageBytes);
      copy_pixels<kSharesPixels>(to + static_cast<u32>(row * kSwizzleRow), p_.pixels, full, channel,
                                 from, tap_offset(tap_column, tile.odd_column, 1),
                                 tap_offset(tap_row, tile.odd_row, 0));
      copy_box<!kSharesPixels>(to + static_cast<u32>(Tile::kLeftBytes + out * kSwizzleRow),
                               p_.filters, full, channel, tile.out / 4, out / (Tile::kOuts / 4),
                               tap);
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
  RingBarriers& barriers_;
  const u32 base_, rank_;
  RingPlace<Tile::kStages> ring_;
};

template <class T>
RB_DEVICE void store_run(const ImageConvParams& p, int pixel, int out, const float (&sums)[8]) {
  Pack<T> result;
#pragma unroll
  for (int e = 0; e < 8; ++e) result.values[e] = store_value<T>(sums[e]);
  store128(static_cast<T*>(p.y) + static_cast<i64>(pixel) * p.outs + out, result);
}

// A warpgroup, which multiplies half of a tile's pixels.
template <class T, class Tile>
class ConvConsumer {
 public:
  RB_DEVICE ConvConsumer(const TensorConvParams& p, RingBarriers& barriers, u32 base, int group)
      : p_(p),
        ring_(barriers, base, group),
        runs_(p, group * kGroup + static_cast<int>(thread_x()) % kGroup) {}

  RB_DEVICE void run() {
    for (u32 unit = cluster_x(); unit < static_cast<u32>(p_.units); unit += clusters()) {
      const Tile tile(p_, unit, block_of_cluster());
      Sums sums = {};
      sum_steps<T>(ring_, tile.end - tile.first, sums);
      store(tile, sums);
    }
  }

 private:
  using Runs = ConvRuns<Tile>;
  using Sums = float[Tile::kHalves][Tile::kSums];
  static constexpr int kThreadRows = Runs::kThreadRows;
  static constexpr int kRun = Runs::kRun, kRuns = Runs::kRuns;

  struct Rows {
    int pixels[kThreadRows];
  };

  RB_DEVICE void store(const Tile& tile, const Sums& sums) const {
    Rows rows;
#pragma unroll
    for (int i = 0; i < kThreadRows; ++i) rows.pixels[i] = runs_.pixel(tile, i);
    if (p_.partials != nullptr) {
      store_partials(tile, rows, sums);
    } else {
      store_results(tile, rows, sums);
    }
  }
  RB_DEVICE void store_partials(const Tile& tile, const Rows& rows, const Sums& sums) const {
    float* to = runs_.part(tile);
    const int step = runs_.part_step();
#pragma unroll
    for (int i = 0; i < kRuns; ++i, to += 2 * step) {
      if (runs_.out(tile, i) >= p_.conv.outs || rows.pixels[i % kThreadRows] < 0) continue;
      float run[kRun];
      Runs::take(sums, i, run);
      store_four(to, run);
      store_four(to + step, run + 4);
    }
  }
  static constexpr int kAhead = Tile::kHalves == 1 ? 6 : 3;  // runs whose residual is under way
  RB_DEVICE void load_residual(const Tile& tile, const Rows& rows, int i,
                               Pack<T> (&into)[kAhead]) const {
    const int out = runs_.out(tile, i), pixel = rows.pixels[i % kThreadRows];
    if (p_.conv.residual == nullptr || out >= p_.conv.outs || pixel < 0) return;
    into[i % kAhead] = load_run<T>(p_.conv.residual, static_cast<i64>(pixel) * p_.conv.outs + out);
  }
  RB_DEVICE void store_results(const Tile& tile, const Rows& rows, const Sums& sums) const {
    const ImageConvParams& p = p_.conv;
    Pack<T> residual[kAhead], bias;
#pragma unroll
    for (int i = 0; i < kAhead; ++i) load_residual(tile, rows, i, residual);
#pragma unroll
    for (int i = 0; i < kRuns; ++i) {
      const int out = runs_.out(tile, i), pixel = rows.pixels[i % kThreadRows];
      if (i % kThreadRows == 0 && p.bias != nullptr && out < p.outs)
        bias = load_run<T>(p.bias, out);
      if (out < p.outs && pixel >= 0) {
        float run[kRun];
        Runs::take(sums, i, run);
        if (p.bias != nullptr) add_run(bias, run);
        if (p.channel_add != nullptr) {
          const i64 image = divide(static_cast<u32>(pixel), p.out_pixels);
          add_run(load_run<T>(p.channel_add, image * p.outs + out), run);
        }
        if (p.residual != nullptr) add_run(residual[i % kAhead], run);
        store_run<T>(p, pixel, out, run);
      }
      if (i + kAhead < kRuns) load_residual(tile, rows, i + kAhead, residual);
    }
  }

  const TensorConvParams& p_;
  RingReader<Tile> ring_;
  const Runs runs_;
};

template <class T, int kRows, int kOuts>
RB_DEVICE void image_conv(const TensorConvParams& p) {
  using Tile = ConvTile<kRows, kOuts>;
  extern __shared__ u8 dynamic[];
  RB_SHARED RingBarriers barriers;
  const u32 base = (shared_address(dynamic) + 1023) & ~1023u;
  if (thread_x() == 0) {
    prefetch_map(p.pixels);
    prefetch_map(p.filters);
    start_ring<Tile>(barriers, 1);
  }
  cluster_barrier();
  wait_for_previous_kernel();
  const int group = static_cast<int>(thread_x()) / kGroup;
  if (group == 0) {
    shrink_registers<40>();
    if (thread_x() == 0) ConvProducer<Tile>(p, barriers, base).run();
    wave_barrier();
  } else {
    grow_registers<232>();
    ConvConsumer<T, Tile>(p, barriers, base, group - 1).run();
  }
  // A block must keep its shared memory until the other one no longer writes to it.
  cluster_barrier();
}

// Adds a run's parts of the depth in order. They lie `apart`, and `step` between a run's halves.
RB_DEVICE void add_parts(const float* from, i64 apart, int step, int splits, float (&sums)[8]) {
  constexpr int kAhead = 8;  // parts that are under way
  for (int first = 0; first < splits; first += kAhead, from += kAhead * apart) {
    Pack<float> parts[kAhead][2];
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      if (first + j >= splits) continue;
      parts[j][0] = load128(from + j * apart);
      parts[j][1] = load128(from + j * apart + step);
    }
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      if (first + j >= splits) continue;
#pragma unroll
      for (int e = 0; e < 8; ++e) sums[e] += parts[j][e / 4].values[e % 4];
    }
  }
}

// Joins the parts of the depth. Block: a run of each thread of a tile.
template <class T, int kRows, int kOuts>
RB_DEVICE void image_conv_join(const TensorConvParams& p) {
  using Tile = ConvTile<kRows, kOuts>;
  const u32 of_tile = static_cast<u32>(p.part_runs), pair = block_x() / of_tile / 2;
  const Tile tile(p, pair * static_cast<u32>(p.splits), block_x() / of_tile % 2);
  const ConvRuns<Tile> runs(p, static_cast<int>(thread_x()));
  const int i = static_cast<int>(block_x() % of_tile);
  const int out = runs.out(tile, i), pixel = runs.pixel(tile, i % runs.kThreadRows);
  if (out >= p.conv.outs || pixel < 0) return;
  const ImageConvParams& conv = p.conv;
  const bool whole = conv.outs % runs.kRun == 0;
  Pack<T> residual;
  const bool adds = whole && conv.residual != nullptr;
  if (adds) residual = load_run<T>(conv.residual, static_cast<i64>(pixel) * conv.outs + out);
  float sums[8] = {};
  const int step = runs.part_step();
  add_parts(runs.part(tile) + 2 * i * step, static_cast<i64>(4) * p.part_runs * step, step,
            p.splits, sums);
  if (!whole) {
#pragma unroll
    for (int e = 0; e < 8; e += 2) store_outputs<T>(conv, pixel, out + e, sums[e], sums[e + 1]);
    return;
  }
  if (conv.bias != nullptr) add_run(load_run<T>(conv.bias, out), sums);
  if (conv.channel_add != nullptr) {
    const i64 image = divide(static_cast<u32>(pixel), conv.out_pixels);
    add_run(load_run<T>(conv.channel_add, image * conv.outs + out), sums);
  }
  if (adds) add_run(residual, sums);
  store_run<T>(conv, pixel, out, sums);
}

#define RB_TILE(dtype, T, rows, outs)                                                       \
  extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(kRingThreads, 1)   \
      image_conv_##dtype##_##rows##x##outs(const __grid_constant__ TensorConvParams p) {    \
    start_next_kernel();                                                                    \
    image_conv<T, rows, outs>(p);                                                           \
  }                                                                                         \
  RB_KERNEL(image_conv_##dtype##_join_##rows##x##outs, kProducts* kGroup, TensorConvParams, \
            (image_conv_join<T, rows, outs>(p)))
#define RB_CONV(dtype, T)     \
  RB_TILE(dtype, T, 128, 128) \
  RB_TILE(dtype, T, 128, 160) \
  RB_TILE(dtype, T, 128, 256) \
  RB_TILE(dtype, T, 256, 128) \
  RB_TILE(dtype, T, 256, 160)
RB_CONV(f16, f16)
RB_CONV(bf16, bf16)

}  // namespace gpu
}  // namespace rbee

#endif
