#include "backends/cuda/ops/linear_tma.h"

#include <algorithm>
#include <span>

#include "backends/cuda/cuda_driver.h"
#include "backends/cuda/ops/tensor_lines.h"
#include "backends/gpu/gpu_device.h"
#include "backends/gpu/ops/float_number.h"
#include "backends/gpu/ops/linear_few_rows.h"
#include "backends/gpu/ops/pack_weight.h"
#include "backends/gpu/ops/tensor_linear.h"
#include "backends/shared/packed_weight.h"

namespace rbee::cuda {
namespace {

// As in kernels/tensor_ring.h and gemm_tma.cu.
constexpr int64_t kRingBytes = 225 * 1024;
constexpr int64_t kMostStages = 7, kMostScaledStages = 6;
constexpr int64_t kQuarters = 4;  // of a tile's outputs: every fourth
constexpr uint32_t kThreads = 384;
constexpr int64_t kRun = 8;  // outputs that a thread writes at once

struct Tile {
  const char* name;
  int64_t rows, outs, stages;

  uint32_t shared_bytes() const {
    const int64_t stage = (rows + outs) * kTensorStepBytes;
    return static_cast<uint32_t>(std::min(stages, kRingBytes / stage) * stage + 1024);
  }
};
constexpr Tile kTiles[] = {{"128x128", 128, 128, kMostStages},
                           {"128x256", 128, 256, kMostStages},
                           {"256x128", 256, 128, kMostStages}};
constexpr Tile kScaledTiles[] = {{"128x128", 128, 128, kMostScaledStages}};

int64_t ceil_div(int64_t count, int64_t each) {
  return (count + each - 1) / each;
}

// The cost of a tile in nanoseconds, as for convolutions (image_conv_tma.cc): a step by its
// products and by itself, writing the results, and the extra writes of tiles that share the depth.
constexpr double kNsOfProduct = 1.0 / 56;
constexpr double kNsOfStep = 90;
constexpr double kNsOfLine = 0.05;  // that a block fetches: of two ways the shorter one
constexpr double kNsOfOutput = 0.12;
constexpr double kNsOfJoin = 3000;
constexpr double kNsOfPartial = 8.0 / 2000;  // bytes over bytes in a nanosecond
constexpr int64_t kFewestSteps = 8;          // of a split
constexpr int64_t kStepsOfSplit = 4;         // a multiple of it: scales are read four at a time
constexpr int64_t kMostParts = int64_t{1} << 28;  // sums that are written for adding

struct Choice {
  Tile tile = kTiles[0];
  bool shares_x = false;
  int64_t down = 0, across = 0;  // pairs of tiles
  int64_t steps = 0;             // of a split
  int64_t splits = 1;
  double cost = 0;
};

struct Size {
  int64_t rows, outs, steps;
  bool splits;  // the depth may be shared
};

Choice choice_of(const Tile& tile, bool shares_x, const Size& size, bool splits, int64_t clusters) {
  Choice out{.tile = tile, .shares_x = shares_x};
  out.down = ceil_div(size.rows, tile.rows * (shares_x ? 1 : 2));
  out.across = ceil_div(size.outs, tile.outs * (shares_x ? 2 : 1));
  const int64_t pairs = out.down * out.across;
  const int64_t most =
      splits ? std::max<int64_t>(std::min(clusters / pairs, size.steps / kFewestSteps), 1) : 1;
  out.steps = ceil_div(ceil_div(size.steps, most), kStepsOfSplit) * kStepsOfSplit;
  out.splits = ceil_div(size.steps, out.steps);
  const auto outputs = static_cast<double>(tile.rows * tile.outs);
  const auto lines =
      static_cast<double>(shares_x ? tile.rows / 2 + tile.outs : tile.rows + tile.outs / 2);
  const double step = kNsOfProduct * outputs + kNsOfStep + kNsOfLine * lines;
  const auto rounds = static_cast<double>(ceil_div(pairs * out.splits, clusters));
  const auto steps = static_cast<double>(std::min(out.steps, size.steps));
  out.cost = rounds * (steps * step + kNsOfOutput * outputs);
  if (out.splits > 1) {
    out.cost += kNsOfJoin + kNsOfPartial * static_cast<double>(size.rows * size.outs * out.splits);
  }
  return out;
}

Choice choose(std::span<const Tile> tiles, const Size& size, int64_t multiprocessors) {
  const int64_t clusters = std::max<int64_t>(multiprocessors / 2, 1);
  Choice best;
  for (const Tile& tile : tiles) {
    for (const bool shares_x : {true, false}) {
      for (const bool splits : {false, true}) {
        if (splits && !size.splits) continue;
        const Choice choice = choice_of(tile, shares_x, size, splits, clusters);
        if (best.cost == 0 || choice.cost < best.cost) best = choice;
      }
    }
  }
  return best;
}

// `outs` of a tile and `quarters` of them in a box.
TensorMapTiles outs_map(const TensorLines& weight, int64_t outs, uint32_t quarters) {
  const auto pitch = static_cast<uint64_t>(weight.pitch);
  return {.dtype = weight.dtype,
          .data = weight.data,
          .sizes = {static_cast<uint64_t>(weight.depth),
                    static_cast<uint64_t>(weight.lines / kQuarters), kQuarters, 1},
          .strides = {kQuarters * pitch, pitch, pitch},
          .box = {weight.step(), static_cast<uint32_t>(outs / kQuarters), quarters, 1}};
}

struct Product {
  TensorLines x, weight;
  std::span<const Tile> tiles;
  // Of e4m3.
  const float* x_scales = nullptr;
  int64_t x_scale_row = 0;
  const std::byte* weight_scales = nullptr;
};

shared::TensorGemmParams params_of(const Product& product, const LinearPart& part,
                                   const Choice& choice, CudaDriver& driver) {
  const auto narrow = [](int64_t n) { return static_cast<int32_t>(n); };
  const int64_t together = choice.shares_x ? 2 : 1;  // blocks that fetch a tile's rows
  return {.x = driver.tensor_map(product.x.map(choice.tile.rows / together)),
          .weight = driver.tensor_map(
              outs_map(product.weight, choice.tile.outs, choice.shares_x ? 4 : 2)),
          .bias = part.bias.data,
          .y = part.y.data,
          .y_row = part.y.stride(0),
          .y_type = gpu::float_number(part.y.dtype),
          .rows = narrow(product.x.lines),
          .outs = narrow(product.weight.lines),
          .down = narrow(choice.down),
          .across = narrow(choice.across),
          .steps = narrow(ceil_div(product.x.depth, product.x.step())),
          .splits = narrow(choice.splits),
          .steps_of_split = narrow(choice.steps),
          .units = narrow(choice.down * choice.across * choice.splits),
          .shares_x = choice.shares_x ? 1u : 0u,
          .partials = nullptr,
          .x_scales = product.x_scales,
          .x_scale_row = product.x_scale_row,
          .weight_scales = reinterpret_cast<const uint8_t*>(product.weight_scales),
          .weight_row_bytes = product.weight.pitch};
}

void multiply(const Product& product, const LinearPart& part, Stream& stream) {
  gpu::GpuDevice& device = gpu::device_of(stream);
  const int64_t rows = product.x.lines, outs = product.weight.lines;
  const int64_t multiprocessors = device.properties().multiprocessors;
  const Size size{.rows = rows,
                  .outs = outs,
                  .steps = ceil_div(product.x.depth, product.x.step()),
                  .splits = part.y.stride(0) == outs && rows * outs < kMostParts};
  const Choice choice = choose(product.tiles, size, multiprocessors);
  shared::TensorGemmParams params =
      params_of(product, part, choice, static_cast<CudaDriver&>(device.driver()));
  const int64_t tiles = ceil_div(outs, choice.tile.outs);
  const int64_t sums = choice.splits > 1 ? tiles * choice.splits * rows * choice.tile.outs : 0;
  const gpu::Scratch partials(stream, static_cast<size_t>(sums) * sizeof(float));
  params.partials = partials.as<float>();
  const int64_t clusters = std::clamp<int64_t>(multiprocessors / 2, 1, params.units);
  gpu::launch(stream,
              {.op = "linear",
               .family = "gemm_tma",
               .kernel = gpu::KernelName("gemm", product.x.dtype, choice.tile.name),
               .grid = {.x = static_cast<uint32_t>(2 * clusters)},
               .threads = kThreads,
               .shared_bytes = choice.tile.shared_bytes(),
               .writes = gpu::Writes::floats},
              params);
  if (choice.splits == 1) return;
  gpu::add_up_parts({.partials = params.partials,
                     .rows = rows,
                     .outs = choice.tile.outs,
                     .splits = choice.splits},
                    part, stream);
}

const char* refuse_part(const LinearPart& part) {
  if (part.weight.size(0) % kRun != 0) return "takes multiples of 8 outputs";
  if (part.y.size(0) > 1 && part.y.stride(0) % kRun != 0)
    return "rows of y are no whole 8 elements";
  return part.weight.size(1) == 0 ? "takes a depth of at least 1" : nullptr;
}

const char* refuse(const LinearArgs& args) {
  for (const LinearPart& part : args.parts) {
    if (const char* why = refuse_part(part)) return why;
  }
  return gpu::refuse_tensor_linear(args);
}

void run(const LinearArgs& args, Stream& stream) {
  const auto lines_of = [](const View& view) {
    return TensorLines{.dtype = view.dtype,
                       .data = view.data,
                       .lines = view.size(0),
                       .depth = view.size(1),
                       .bytes = 2,
                       .pitch = 2 * view.size(1)};
  };
  for (const LinearPart& part : args.parts) {
    if (part.weight.size(0) == 0) continue;
    multiply({.x = lines_of(args.x), .weight = lines_of(part.weight), .tiles = kTiles}, part,
             stream);
  }
}

const char* refuse_e4m3(const LinearArgs& args) {
  if (args.may_round_to != DType::f8e4m3) return "takes x that may be rounded to f8e4m3";
  for (const LinearPart& part : args.parts) {
    if (part.weight.dtype != DType::f8_g128) return "takes f8_g128 weights";
    if (part.weight.packing != gpu::kPlanesPacking) return "reads block types packed";
    if (const char* why = refuse_part(part)) return why;
  }
  if (gpu::float_number(args.x.dtype) > 2) return "takes x of f32, f16 and bf16";
  return gpu::refuse_tensor_shapes(args);
}

// x in e4m3. The object owns the memory, and frees it in stream order.
class RoundedInput {
 public:
  RoundedInput(const View& x, Stream& stream)
      : rows_(x.size(0)),
        in_(x.size(1)),
        scale_row_(ceil_div(rows_, 4) * 4),
        codes_(stream, static_cast<size_t>(rows_ * in_)),
        scales_(stream,
                static_cast<size_t>(in_ / shared::kE4m3Group * scale_row_) * sizeof(float)) {
    constexpr int64_t kLanes = 16;  // of a group
    const int64_t threads = rows_ * (in_ / shared::kE4m3Group) * kLanes;
    gpu::launch(stream,
                {.op = "linear",
                 .family = "gemm_tma",
                 .kernel = gpu::KernelName("quantize_e4m3", x.dtype),
                 .grid = {.x = gpu::blocks_for(threads, shared::kQuantizeE4m3Threads)},
                 .threads = shared::kQuantizeE4m3Threads,
                 .writes = gpu::Writes::results},
                shared::QuantizeE4m3Params{.x = x.data,
                                           .codes = codes_.as<uint8_t>(),
                                           .scales = scales_.as<float>(),
                                           .rows = rows_,
                                           .in = in_,
                                           .scale_row = scale_row_});
  }
  TensorLines codes() const {
    return {.dtype = DType::f8e4m3,
            .data = codes_.as<const void>(),
            .lines = rows_,
            .depth = in_,
            .bytes = 1,
            .pitch = in_};
  }
  const float* scales() const { return scales_.as<const float>(); }
  int64_t scale_row() const { return scale_row_; }

 private:
  int64_t rows_, in_, scale_row_;
  gpu::Scratch codes_, scales_;
};

void run_e4m3(const LinearArgs& args, Stream& stream) {
  const RoundedInput x(args.x, stream);
  const int64_t in = args.x.size(1);
  const shared::PackedLayout layout = shared::packed_layout<shared::BlockF8_G128>(in);
  for (const LinearPart& part : args.parts) {
    if (part.weight.size(0) == 0) continue;
    const auto* data = static_cast<const std::byte*>(part.weight.data);
    multiply({.x = x.codes(),
              .weight = {.dtype = DType::f8e4m3,
                         .data = data,
                         .lines = part.weight.size(0),
                         .depth = in,
                         .bytes = 1,
                         .pitch = layout.row_bytes},
              .tiles = kScaledTiles,
              .x_scales = x.scales(),
              .x_scale_row = x.scale_row(),
              .weight_scales = data + layout.scale},
             part, stream);
  }
}

}  // namespace

const Impl<LinearArgs> linear_tma{"tma", refuse, run};
const Impl<LinearArgs> linear_tma_e4m3{"tma_e4m3", refuse_e4m3, run_e4m3};

}  // namespace rbee::cuda
