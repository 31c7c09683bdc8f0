#include "backends/cuda/ops/image_conv_tma.h"

#include <algorithm>
#include <cstdlib>

#include "backends/cuda/cuda_driver.h"
#include "backends/gpu/gpu_device.h"
#include "backends/gpu/ops/image_conv.h"

namespace rbee::cuda {
namespace {

// As in kernels/image_conv_tma.cu.
constexpr int64_t kStepDepth = 64;
constexpr int64_t kRun = 8;          // outputs that a lane writes at once
constexpr int64_t kQuarters = 4;     // of a tile's filters: every fourth
constexpr int64_t kLineBytes = 128;  // of a pixel or a filter in a step
constexpr int64_t kRingBytes = 225 * 1024;
constexpr int64_t kMostStages = 7;
constexpr uint32_t kThreads = 384;
constexpr uint32_t kJoinThreads = 256;  // one for each result
constexpr int64_t kLanes = 4;           // lanes with neighbouring runs
constexpr int64_t kRowsOfThreads = 64;  // of a tile's rows, a thread has one in this many

struct Tile {
  const char* name;
  int64_t rows, outs;
};
constexpr Tile kTiles[] = {{"128x128", 128, 128},
                           {"128x160", 128, 160},
                           {"128x256", 128, 256},
                           {"256x128", 256, 128},
                           {"256x160", 256, 160}};

uint32_t shared_bytes(const Tile& tile) {
  const int64_t stage = (tile.rows + tile.outs) * kLineBytes;
  return static_cast<uint32_t>(std::min(kMostStages, kRingBytes / stage) * stage + 1024);
}

int64_t ceil_div(int64_t count, int64_t each) {
  return (count + each - 1) / each;
}

// The cost of a tile in nanoseconds, fitted to an H200's times of conv_bench with every choice: its
// steps, by their products and by themselves, and writing the results. For partial sums add
// writing, reading and the launch that joins them.
constexpr double kNsOfProduct = 1.0 / 56;  // of one output and step
constexpr double kNsOfStep = 90;
constexpr double kNsOfOutput = 0.12;
constexpr double kNsOfJoin = 3000;
constexpr double kNsOfPartial = 8.0 / 6000;  // bytes over bytes in a nanosecond
constexpr int64_t kFewestSteps = 8;          // of a split

// How to cut the work: in pairs of tiles, and the depth in splits.
struct Choice {
  Tile tile = kTiles[0];
  bool shares_pixels = false;
  int64_t down = 0, across = 0;  // pairs
  int64_t steps = 0;             // of a split
  int64_t splits = 1;
  double cost = 0;
};

struct Size {
  int64_t rows, outs, classes, steps;
  int64_t results;
};

Choice choice_of(const Tile& tile, bool shares_pixels, const Size& size, bool splits,
                 int64_t clusters) {
  Choice out{.tile = tile, .shares_pixels = shares_pixels};
  out.down = ceil_div(size.rows, tile.rows * (shares_pixels ? 1 : 2));
  out.across = ceil_div(size.outs, tile.outs * (shares_pixels ? 2 : 1));
  const int64_t pairs = out.down * out.across * size.classes;
  const int64_t most =
      splits ? std::max<int64_t>(std::min(clusters / pairs, size.steps / kFewestSteps), 1) : 1;
  out.steps = ceil_div(size.steps, most);
  out.splits = ceil_div(size.steps, out.steps);
  const auto outputs = static_cast<double>(tile.rows * tile.outs);
  const auto rounds = static_cast<double>(ceil_div(pairs * out.splits, clusters));
  out.cost = rounds * (static_cast<double>(out.steps) * (kNsOfProduct * outputs + kNsOfStep) +
                       kNsOfOutput * outputs);
  if (out.splits > 1) {
    out.cost += kNsOfJoin + kNsOfPartial * static_cast<double>(size.results * out.splits);
  }
  return out;
}

Choice choose(const Size& size, int64_t multiprocessors) {
  const int64_t clusters = std::max<int64_t>(multiprocessors / 2, 1);
  Choice best;
  for (const Tile& tile : kTiles) {
    for (const bool shares_pixels : {true, false}) {
      for (const bool splits : {false, true}) {
        const Choice choice = choice_of(tile, shares_pixels, size, splits, clusters);
        if (best.cost == 0 || choice.cost < best.cost) best = choice;
      }
    }
  }
  return best;
}

// Rounds half of a negative number down, too.
int64_t half(int64_t n) {
  return n >= 0 ? n / 2 : -((1 - n) / 2);
}

// The pixels that outputs of one class see, along the image's axis `axis` (1: rows, 2: columns).
struct Axis {
  int64_t outputs;    // of the class
  int64_t first_tap;  // from an output to the pixel under tap 0, class 0
  int64_t last_tap;   // between the first and the last tap, of any class
  int upper;          // as TensorPixels has it
};

Axis axis_of(const ImageConvArgs& args, int axis) {
  const int64_t padding = axis == 1 ? args.pad_top : args.pad_left;
  const int64_t taps = args.weight.size(axis);
  Axis out{};
  out.outputs = args.y.size(axis) / (args.upsample ? 2 : 1);
  out.first_tap = args.upsample ? half(-padding) : -padding;
  out.last_tap = args.upsample ? half(taps - padding) - out.first_tap : taps - 1;
  out.upper =
      static_cast<int>((out.outputs - 1) * args.stride + out.first_tap - (args.x.size(axis) - 1));
  return out;
}

const char* refuse(const ImageConvArgs& args) {
  if (const char* why = gpu::refuse_tensor_image_conv(args)) return why;
  constexpr int64_t kMostCorner = 127, kMostTap = 255, kMostStride = 8;
  const int64_t outs = args.y.size(3);
  if (outs > kQuarters && outs % kQuarters != 0) return "takes multiples of four outputs, or fewer";
  if (args.stride > kMostStride) return "takes strides of 8 at most";
  if (args.upsample && args.stride != 1) return "takes enlarged images with a stride of 1";
  for (const int axis : {1, 2}) {
    if (args.upsample && args.y.size(axis) != 2 * args.x.size(axis)) {
      return "takes enlarged images with outputs of their size";
    }
    const Axis along = axis_of(args, axis);
    if (along.first_tap < -kMostCorner || along.last_tap > kMostTap ||
        std::abs(along.upper) > kMostCorner) {
      return "takes smaller paddings and kernels";
    }
  }
  for (int axis = 0; axis < 3; ++axis) {
    if (args.x.size(axis) > 1 && args.x.stride(axis) <= 0)
      return "takes axes with places of their own";
  }
  return nullptr;
}

uint64_t bytes(int64_t elements) {
  return static_cast<uint64_t>(elements) * 2;
}

// As in TensorConvParams; `outs` of a tile and `quarters` of them in a box.
TensorMapTiles filter_tiles(const View& weight, int64_t outs, uint32_t quarters) {
  const auto size = [](int64_t n) { return static_cast<uint64_t>(n); };
  const int64_t channels = weight.size(3), taps = weight.size(1) * weight.size(2);
  const uint64_t filter = bytes(channels * taps);
  const int64_t count = weight.size(0), of_quarter = ceil_div(count, kQuarters);
  return {.dtype = weight.dtype,
          .data = weight.data,
          .sizes = {size(channels), size(of_quarter), size(std::min(count, kQuarters)), size(taps)},
          .strides = {kQuarters * filter, filter, bytes(channels)},
          .box = {kStepDepth, static_cast<uint32_t>(outs / kQuarters), quarters, 1}};
}

void fill_maps(const ImageConvArgs& args, const Choice& choice, CudaDriver& driver,
               shared::TensorConvParams& params) {
  const View& x = args.x;
  const Axis rows = axis_of(args, 1), columns = axis_of(args, 2);
  const auto size = [](int64_t n) { return static_cast<uint64_t>(n); };
  const int64_t together = choice.shares_pixels ? 2 : 1;  // blocks that fetch a tile's pixels
  params.pixels = driver.tensor_map(
      TensorPixels{.dtype = x.dtype,
                   .data = x.data,
                   .sizes = {size(x.size(3)), size(x.size(2)), size(x.size(1)), size(x.size(0))},
                   .strides = {bytes(x.stride(2)), bytes(x.stride(1)), bytes(x.stride(0))},
                   .lower = {static_cast<int>(columns.first_tap), static_cast<int>(rows.first_tap)},
                   .upper = {columns.upper, rows.upper},
                   .channels = kStepDepth,
                   .pixels = static_cast<uint32_t>(choice.tile.rows / together),
                   .stride = static_cast<uint32_t>(args.stride)});
  params.filters =
      driver.tensor_map(filter_tiles(args.weight, choice.tile.outs, choice.shares_pixels ? 4 : 2));
}

// If tiles share the depth, units write their sums to memory, for a second kernel to join. They do
// so with one split, too, if results are not whole runs of eight.
bool joins(const Choice& choice, const Size& size) {
  return choice.splits > 1 || size.outs % kRun != 0;
}

// A thread's part of a tile whose columns may not all exist.
void fill_parts(const Choice& choice, const Size& size, shared::TensorConvParams& params) {
  const int64_t runs = ceil_div(std::min(size.outs, choice.tile.outs), kRun);
  params.splits = static_cast<int32_t>(choice.splits);
  params.part_lanes = static_cast<int32_t>(std::min(runs, kLanes));
  params.part_runs =
      static_cast<int32_t>(ceil_div(runs, kLanes) * (choice.tile.rows / kRowsOfThreads));
}

void run(const ImageConvArgs& args, Stream& stream) {
  if (args.y.numel() == 0) return;
  gpu::GpuDevice& device = gpu::device_of(stream);
  const Axis rows = axis_of(args, 1), columns = axis_of(args, 2);
  const int64_t chunks = ceil_div(args.weight.size(3), kStepDepth);
  const Size size{.rows = args.y.size(0) * rows.outputs * columns.outputs,
                  .outs = args.y.size(3),
                  .classes = args.upsample ? 4 : 1,
                  .steps = chunks * args.weight.size(1) * args.weight.size(2),
                  .results = args.y.numel()};
  const Choice choice = choose(size, device.properties().multiprocessors);
  const auto narrow = [](int64_t n) { return static_cast<int32_t>(n); };
  shared::TensorConvParams params{
      .pixels = {},
      .filters = {},
      .conv = gpu::image_conv_params(args),
      .height = narrow(rows.outputs),
      .width = narrow(columns.outputs),
      .rows = narrow(size.rows),
      .down = narrow(choice.down),
      .across = narrow(choice.across),
      .classes = narrow(size.classes),
      .chunks = narrow(chunks),
      .steps = narrow(size.steps),
      .steps_of_split = narrow(choice.steps),
      .units = narrow(choice.down * choice.across * size.classes * choice.splits),
      .first_tap = {narrow(rows.first_tap), narrow(columns.first_tap)},
      .shares_pixels = choice.shares_pixels ? 1u : 0u};
  fill_maps(args, choice, static_cast<CudaDriver&>(device.driver()), params);
  fill_parts(choice, size, params);
  const bool joined = joins(choice, size);
  const int64_t part_bytes = int64_t{params.part_runs} * params.part_lanes * kRowsOfThreads * kRun *
                             static_cast<int64_t>(sizeof(float));
  const gpu::Scratch partials(stream,
                              joined ? static_cast<size_t>(2 * params.units * part_bytes) : 0);
  if (joined) params.partials = partials.as<float>();
  const auto start = [&](const gpu::KernelName& kernel, int64_t blocks, uint32_t threads,
                         uint32_t shared) {
    gpu::launch(stream,
                {.op = "image_conv",
                 .family = "image_conv_tma",
                 .kernel = kernel,
                 .grid = {.x = static_cast<uint32_t>(blocks)},
                 .threads = threads,
                 .shared_bytes = shared},
                params);
  };
  const int64_t clusters =
      std::clamp<int64_t>(device.properties().multiprocessors / 2, 1, params.units);
  start(gpu::KernelName("image_conv", args.x.dtype, choice.tile.name), 2 * clusters, kThreads,
        shared_bytes(choice.tile));
  if (!joined) return;
  start(gpu::KernelName("image_conv", args.x.dtype, "join").part(choice.tile.name),
        int64_t{2} * params.units / choice.splits * params.part_runs, kJoinThreads, 0);
}

}  // namespace

const Impl<ImageConvArgs> image_conv_tma{"tma", refuse, run};

}  // namespace rbee::cuda
