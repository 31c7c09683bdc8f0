#include "backends/cpu/image_winograd.h"

#include <algorithm>

#include "backends/cpu/cpu_features.h"
#include "backends/cpu/image_conv_parts.h"
#include "backends/cpu/linear/pack.h"
#include "backends/cpu/linear/scratch.h"
#include "backends/cpu/simd/winograd.h"
#include "backends/cpu/thread_pool.h"
#include "backends/cpu/workspace.h"
#include "rbee/core/dtype.h"

#if defined(__x86_64__) || defined(__aarch64__)

namespace rbee::cpu {
namespace {

constexpr int64_t kPlaces = kWinogradPlaces;
// Transformed inputs that are kept at a time: they stay in the last-level cache.
constexpr int64_t kBlockBytes = 12 << 20;
// A task's tiles, panels and inputs at a time: their sums and transformed weights stay in the
// second-level cache.
constexpr int64_t kTaskTiles = 72;
constexpr int64_t kTaskPanels = 2;
constexpr int64_t kChunk = 128;
// Floats between one place's numbers and the next one's beyond what they take: without them places
// would lie multiples of 4096 bytes apart.
constexpr int64_t kGap = 16;
constexpr int64_t kTileUnit = 12;  // a multiple of the row tiles, 4, 6 and 12
constexpr int64_t kTasksPerThread = 4;
// Below these the transforms of the weights cost more than they save.
constexpr int64_t kMinTiles = 16;
constexpr int64_t kMinChannels = 32;

struct Isas {
  const LinearIsa& linear;
  const WinogradKernels& winograd;
};

// Tiles of all images, in the order of pixels.
struct Grid {
  explicit Grid(const View& y)
      : rows((y.size(1) + kWinogradSide - 1) / kWinogradSide),
        columns((y.size(2) + kWinogradSide - 1) / kWinogradSide),
        tiles(y.size(0) * rows * columns) {}

  int64_t rows, columns, tiles;
};

struct TilePlace {
  int64_t n, row, column;  // image, first pixel of the result
};

TilePlace place_of(const Grid& grid, int64_t tile) {
  const int64_t in_image = tile % (grid.rows * grid.columns);
  return {tile / (grid.rows * grid.columns), in_image / grid.columns * kWinogradSide,
          in_image % grid.columns * kWinogradSide};
}

// Shared by all tasks. Transformed inputs are (chunk of inputs, place, tile of the block, input of
// the chunk), so that a product reads adjacent memory.
struct Job {
  const ImageConvArgs& args;
  const Isas& isas;
  Grid grid;
  int64_t in, panels;
  const std::byte* weight;       // packed
  float* inputs = nullptr;       // of the block
  int64_t first = 0, block = 0;  // tiles of the block

  int64_t chunk_width(int64_t k) const { return std::min(kChunk, in - k); }
  // Between places of the chunk that begins at input k, and where it begins.
  int64_t place_step(int64_t k) const { return block * chunk_width(k) + kGap; }
  float* chunk(int64_t k) const { return inputs + kPlaces * (block * k + k / kChunk * kGap); }
  static int64_t floats(int64_t tiles, int64_t in) {
    return kPlaces * (tiles * in + (in + kChunk - 1) / kChunk * kGap);
  }
};

// Tile `tile` of the block.
void transform_input(const Job& job, int64_t tile) {
  const View& x = job.args.x;
  const TilePlace place = place_of(job.grid, job.first + tile);
  const int64_t scale = job.args.upsample ? 2 : 1, bytes = info(x.dtype).block_bytes;
  const std::byte* pixels[kPlaces] = {};
  for (int64_t p = 0; p < kPlaces; ++p) {
    const int64_t i = place.row - job.args.pad_top + p / kWinogradInput;
    const int64_t j = place.column - job.args.pad_left + p % kWinogradInput;
    const bool inside = i >= 0 && i < x.size(1) * scale && j >= 0 && j < x.size(2) * scale;
    const int64_t offset =
        place.n * x.stride(0) + i / scale * x.stride(1) + j / scale * x.stride(2);
    if (inside) pixels[p] = x.as<std::byte>() + offset * bytes;
  }
  for (int64_t k = 0; k < job.in; k += kChunk) {
    const void* rows[kPlaces];
    for (int64_t p = 0; p < kPlaces; ++p) {
      rows[p] = pixels[p] == nullptr ? nullptr : pixels[p] + k * bytes;
    }
    const int64_t width = job.chunk_width(k);
    float* to = job.chunk(k) + tile * width;
    job.isas.winograd.input(x.dtype, rows, width, to, job.place_step(k));
  }
}

// Tiles [tile, tile + tiles) of the block with panels [panel, panel + panels).
class Task {
 public:
  Task(const Job& job, int64_t tile, int64_t tiles, int64_t panel)
      : job_(job),
        kernels_(*conv_kernels(job.isas.linear, job.args.weight.dtype)),
        tile_(tile),
        tiles_(tiles),
        panel_(panel),
        panels_(std::min(kTaskPanels, job.panels - panel)) {}

  void run(Scratch& scratch) {
    Carver counter(nullptr);
    carve(counter);
    Carver carver(scratch.reserve(counter.used()));
    carve(carver);
    for (int64_t k = 0; k < job_.in; k += kChunk) multiply(k);
    for (int64_t p = 0; p < panels_; ++p) finish_panel(p);
  }

 private:
  void carve(Carver& carver) {
    sums_ = carver.take<float>(panels_ * kPlaces * sum_step());
    weights_ = carver.take<float>(panels_ * kPlaces * kWeightStep);
    if (kernels_.unpack != nullptr) {
      unpacked_ = carver.take<float>(kWinogradTaps * kChunk * kPanelRows);
    }
  }

  static constexpr int64_t kWeightStep = kChunk * kPanelRows + kGap;
  int64_t sum_step() const { return tiles_ * kPanelRows + kGap; }

  // Inputs [k, k + count) of panel p of the weight, transformed.
  void transform_weight(int64_t p, int64_t k, int64_t count) {
    const DType dtype = job_.args.weight.dtype;
    const std::byte* panel =
        job_.weight + (panel_ + p) * panel_bytes(dtype, kWinogradTaps * job_.in);
    const float* taps[kWinogradTaps];
    for (int64_t tap = 0; tap < kWinogradTaps; ++tap) {
      const std::byte* from = panel + panel_bytes(dtype, tap * job_.in + k);
      taps[tap] = reinterpret_cast<const float*>(from);
      if (kernels_.unpack == nullptr) continue;
      float* plain = unpacked_ + tap * kChunk * kPanelRows;
      kernels_.unpack(from, count, {.f32 = plain});
      taps[tap] = plain;
    }
    job_.isas.winograd.weight(taps, count, weights_ + p * kPlaces * kWeightStep, kWeightStep);
  }

  // Adds the products of the chunk of inputs that begins at k.
  void multiply(int64_t k) {
    const int64_t count = job_.chunk_width(k);
    for (int64_t p = 0; p < panels_; ++p) transform_weight(p, k, count);
    const PanelKernels& f32 = *job_.isas.linear.kernels[DType::f32];
    for (int64_t place = 0; place < kPlaces; ++place) {
      if (panels_ == 2 && f32.pair != nullptr) {
        f32.pair(product(place, 0, k), product(place, 1, k));
        continue;
      }
      for (int64_t p = 0; p < panels_; ++p) f32.rows(product(place, p, k));
    }
  }

  PanelProduct product(int64_t place, int64_t p, int64_t k) const {
    const int64_t count = job_.chunk_width(k);
    const float* inputs = job_.chunk(k) + place * job_.place_step(k) + tile_ * count;
    const float* weights = weights_ + (p * kPlaces + place) * kWeightStep;
    return {.x = {.f32 = inputs, .stride = count},
            .rows = tiles_,
            .in = count,
            .packed = reinterpret_cast<const std::byte*>(weights),
            .y = sums_ + (p * kPlaces + place) * sum_step(),
            .y_stride = kPanelRows,
            .accumulate = k > 0};
  }

  // The outputs of panel p: straight to y where the panel is whole, else pixel by pixel.
  void finish_panel(int64_t p) {
    const ImageConvArgs& args = job_.args;
    const int64_t first = (panel_ + p) * kPanelRows;
    const int64_t count = std::min<int64_t>(kPanelRows, args.y.size(3) - first);
    const bool plain_residual = !args.residual || args.residual.stride(3) == 1;
    const bool direct = count == kPanelRows && plain_residual;
    float add[kPanelRows] = {};
    for (int64_t t = 0, image = -1; t < tiles_; ++t) {
      const TilePlace place = place_of(job_.grid, job_.first + tile_ + t);
      const float* sums = sums_ + p * kPlaces * sum_step() + t * kPanelRows;
      if (!direct) {
        finish_pixels(sums, place, {0, first, count});
        continue;
      }
      if (place.n != image) sum_additions(place.n, first, add);
      image = place.n;
      finish(sums, place, first, add);
    }
  }

  // Calls body(output, row, column, pixel of all images) for the tile's pixels in the image.
  template <typename Body>
  void for_pixels(const TilePlace& place, const Body& body) const {
    const View& y = job_.args.y;
    for (int o = 0; o < kWinogradOutputs; ++o) {
      const int64_t i = place.row + o / kWinogradSide, j = place.column + o % kWinogradSide;
      if (i < y.size(1) && j < y.size(2)) body(o, i, j, (place.n * y.size(1) + i) * y.size(2) + j);
    }
  }

  void finish(const float* sums, const TilePlace& place, int64_t first, const float* add) const {
    const View &y = job_.args.y, &residual = job_.args.residual;
    const int64_t bytes = info(y.dtype).block_bytes;
    WinogradTarget target{.add = add, .residual = {}, .y = {}};
    for_pixels(place, [&](int o, int64_t i, int64_t j, int64_t pixel) {
      target.y[o] = y.as<std::byte>() + (pixel * y.size(3) + first) * bytes;
      if (!residual) return;
      const int64_t at =
          place.n * residual.stride(0) + i * residual.stride(1) + j * residual.stride(2) + first;
      target.residual[o] = residual.as<std::byte>() + at * bytes;
    });
    job_.isas.winograd.output(y.dtype, sums, sum_step(), target);
  }

  void finish_pixels(const float* sums, const TilePlace& place, PixelPart part) const {
    const float nothing[kPanelRows] = {};
    float outputs[kWinogradOutputs][kPanelRows];
    WinogradTarget target{.add = nothing, .residual = {}, .y = {}};
    for (int o = 0; o < kWinogradOutputs; ++o) target.y[o] = outputs[o];
    job_.isas.winograd.output(DType::f32, sums, sum_step(), target);
    for_pixels(place, [&](int o, int64_t, int64_t, int64_t pixel) {
      part.pixel = pixel;
      finish_pixel(job_.args, job_.isas.linear, part, outputs[o]);
    });
  }

  // Bias and channel_add of a whole panel.
  void sum_additions(int64_t n, int64_t first, float* add) const {
    const FloatRows& rows = *job_.isas.linear.rows;
    const View &bias = job_.args.bias, &channels = job_.args.channel_add;
    std::fill_n(add, kPanelRows, 0.0f);
    add_channels(rows, bias, first * bias.strides[0], kPanelRows, add);
    add_channels(rows, channels, n * channels.strides[0] + first * channels.strides[1], kPanelRows,
                 add);
  }

  const Job& job_;
  const PanelKernels& kernels_;
  int64_t tile_, tiles_;       // of the block
  int64_t panel_, panels_;     // of the weight
  float* sums_ = nullptr;      // (panel, place, tile, 16)
  float* weights_ = nullptr;   // (panel, place, input of the chunk, 16)
  float* unpacked_ = nullptr;  // (tap, input of the chunk, 16)
};

thread_local Scratch task_scratch;

// `most` at most, all of about the same size.
int64_t even_share(int64_t count, int64_t most) {
  const int64_t shares = (count + most - 1) / most;
  const int64_t share = (count + shares - 1) / shares;
  return std::min(count, (share + kTileUnit - 1) / kTileUnit * kTileUnit);
}

void run_block(const Job& job) {
  ThreadPool& pool = ThreadPool::shared();
  pool.parallel_for(job.block, 4, [&](int64_t begin, int64_t end, int) {
    for (int64_t tile = begin; tile < end; ++tile) transform_input(job, tile);
  });
  const int64_t groups = (job.panels + kTaskPanels - 1) / kTaskPanels;
  const int64_t wanted = (kTasksPerThread * pool.threads() + groups - 1) / groups;
  const int64_t most = std::clamp((job.block + wanted - 1) / wanted, kTileUnit, kTaskTiles);
  const int64_t tiles = even_share(job.block, most);
  const int64_t pieces = (job.block + tiles - 1) / tiles;
  pool.parallel_for(groups * pieces, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t tile = i % pieces * tiles;
      Task task(job, tile, std::min(tiles, job.block - tile), i / pieces * kTaskPanels);
      task.run(task_scratch);
    }
  });
}

void run_winograd(const ImageConvArgs& args, const Isas& isas) {
  Job job{.args = args,
          .isas = isas,
          .grid = Grid(args.y),
          .in = args.x.size(3),
          .panels = (args.y.size(3) + kPanelRows - 1) / kPanelRows,
          .weight = conv_panels(args.weight)};
  const int64_t tile_bytes = kPlaces * job.in * static_cast<int64_t>(sizeof(float));
  const int64_t most = std::max(kBlockBytes / tile_bytes, 2 * kTileUnit);
  const int64_t block = even_share(job.grid.tiles, most);
  job.inputs = reinterpret_cast<float*>(
      thread_workspace(Job::floats(block, job.in) * static_cast<int64_t>(sizeof(float))));
  for (; job.first < job.grid.tiles; job.first += block) {
    job.block = std::min(block, job.grid.tiles - job.first);
    run_block(job);
  }
}

const char* refuse(const ImageConvArgs& args, const LinearIsa& linear, Isa needed) {
  const DType x = args.x.dtype;
  if (x != DType::f32 && x != DType::f16 && x != DType::bf16) return "takes f32, f16 and bf16";
  if (is_quantized(args.weight.dtype) || conv_kernels(linear, args.weight.dtype) == nullptr) {
    return "has no kernel for the weight";
  }
  if (args.weight.size(1) != 3 || args.weight.size(2) != 3) return "takes filters of 3 x 3";
  if (args.stride != 1) return "takes strides of 1";
  if (args.x.size(3) % kWinogradLanes != 0) return "takes inputs in sixteens";
  if (args.x.stride(3) != 1) return "takes pixels without gaps";
  if (args.x.size(3) < kMinChannels || args.y.size(3) < kPanelRows) return "wants more channels";
  const Grid grid(args.y);
  if (grid.tiles < kMinTiles) return "wants more pixels";
  if (grid.tiles * kPlaces > 5 * args.y.size(0) * args.y.size(1) * args.y.size(2)) {
    return "wants sizes that make tiles of 4 x 4";
  }
  return missing_isa(needed);
}

#ifdef __x86_64__
constexpr Isas kAvx2{linear_avx2, winograd_avx2};
constexpr Isas kAvx512{linear_avx512, winograd_avx512};
#else
constexpr Isas kNeon{linear_neon, winograd_neon};
#endif

}  // namespace

#ifdef __x86_64__
const Impl<ImageConvArgs> avx2_winograd_conv{
    .name = "winograd_avx2",
    .refuse = [](const ImageConvArgs& args) { return refuse(args, linear_avx2, Isa::avx2); },
    .run = [](const ImageConvArgs& args, Stream&) { run_winograd(args, kAvx2); }};
const Impl<ImageConvArgs> avx512_winograd_conv{
    .name = "winograd_avx512",
    .refuse = [](const ImageConvArgs& args) { return refuse(args, linear_avx512, Isa::avx512); },
    .run = [](const ImageConvArgs& args, Stream&) { run_winograd(args, kAvx512); }};
#else
const Impl<ImageConvArgs> neon_winograd_conv{
    .name = "winograd_neon",
    .refuse = [](const ImageConvArgs& args) { return refuse(args, linear_neon, Isa::neon); },
    .run = [](const ImageConvArgs& args, Stream&) { run_winograd(args, kNeon); }};
#endif

}  // namespace rbee::cpu

#endif  // __x86_64__ or __aarch64__
