#include "backends/cuda/ops/linear_packed_tma.h"

#include <algorithm>
#include <cmath>

#include "backends/api/dispatch_blocks.h"
#include "backends/cuda/cuda_driver.h"
#include "backends/cuda/ops/tensor_lines.h"
#include "backends/gpu/gpu_device.h"
#include "backends/gpu/ops/float_number.h"
#include "backends/gpu/ops/matvec_parts.h"
#include "backends/gpu/ops/pack_weight.h"
#include "backends/gpu/ops/product_input.h"
#include "backends/gpu/ops/tensor_linear.h"
#include "backends/shared/packed_gemm_params.h"
#include "backends/shared/packed_weight.h"

namespace rbee::cuda {
namespace {

constexpr int64_t kFewRows = 32;  // linear_few_packed serves these well
// With more rows slabs, which are written once, are faster: the sooner, the more bits codes have.
constexpr int64_t kMostRows = 2048;
constexpr int64_t kMostByteRows = 1024;  // of codes of 8 bits
constexpr int64_t kUnit = 128;           // elements, as in PackedUnit
constexpr int64_t kRun = 8;              // outputs
constexpr int64_t kPair = 2;             // tiles of a cluster
constexpr int64_t kLeastRows = 64;       // of a tile
constexpr gpu::PackedFamilies kFamilies{"gemm_packed_small_blocks", "gemm_packed_k_blocks",
                                        "gemm_packed_e4m3", "gemm_packed_few_bits"};

// The cost of a tile in nanoseconds: a unit by its products and by itself, writing the results, and
// adding other shares' sums. Measured on an H100.
constexpr double kNsOfProduct = 1.0 / 37;  // of a row and an output with a unit
constexpr double kNsOfUnit = 370;
constexpr double kNsOfOutput = 0.12;
constexpr double kNsOfJoin = 800;
constexpr double kNsOfJoined = 0.07;       // of a row and an output
constexpr int64_t kFewestUnits = 4;        // of a share
constexpr int64_t kMostUnits = INT32_MAX;  // of all tiles

struct Choice {
  int64_t rows = 0;  // of x that a tile has
  int64_t clusters = 0;
  double cost = 0;
};

// tiles: of weights; units: of each tile.
struct Size {
  int64_t rows, tiles, units;
};

int64_t tiles_of(int64_t outs) {
  return (outs + shared::kPackedOuts - 1) / shared::kPackedOuts;
}

int64_t row_tiles(const Size& size, int64_t rows) {
  return (size.rows + rows - 1) / rows;
}

int64_t all_units(const Size& size, int64_t rows) {
  return (size.tiles + kPair - 1) / kPair * row_tiles(size, rows) * size.units;
}

Choice choice_of(const Size& size, int64_t rows, int64_t clusters) {
  const int64_t all = all_units(size, rows);
  const auto outputs = static_cast<double>(rows * shared::kPackedOuts);
  const double share = static_cast<double>(all) / static_cast<double>(clusters);
  const double tiles = share / static_cast<double>(size.units);
  const bool whole = all % (clusters * size.units) == 0;
  const double joins = whole ? 0 : tiles >= 1 ? 1 : std::ceil(1 / tiles);
  const double cost = share * (kNsOfProduct * outputs + kNsOfUnit) +
                      std::ceil(tiles) * kNsOfOutput * outputs +
                      joins * (kNsOfJoin + kNsOfJoined * outputs);
  return {.rows = rows, .clusters = clusters, .cost = cost};
}

Choice choose(const Size& size, int64_t multiprocessors) {
  constexpr int64_t kMost = gpu::kArrivalCounters / (2 * kPair);  // of two warpgroups a block
  Choice best;
  for (const int64_t rows : {kLeastRows, int64_t{128}, int64_t{256}}) {
    const int64_t shares = all_units(size, rows) / std::min(kFewestUnits, size.units);
    const int64_t most = std::clamp<int64_t>(std::min(shares, multiprocessors / kPair), 1, kMost);
    for (int64_t clusters = most; clusters > 0; --clusters) {
      const Choice choice = choice_of(size, rows, clusters);
      if (best.rows == 0 || choice.cost < best.cost) best = choice;
    }
  }
  return best;
}

int unit_bytes(DType weight) {
  int bytes = 0;
  dispatch_blocks("linear", weight, [&]<typename Block>() {
    bytes = shared::PackedUnit<Block>::kBytes * shared::kPackedOuts;
  });
  return bytes;
}

// Whether its codes have 8 bits.
bool has_bytes(DType weight) {
  bool bytes = false;
  dispatch_blocks("linear", weight,
                  [&]<typename Block>() { bytes = shared::PackedFormat<Block>::kLow == 8; });
  return bytes;
}

uint32_t shared_bytes(int rows, DType weight) {
  constexpr int kSwizzled = 1024;  // alignment of the engine's copies
  const int unit = unit_bytes(weight);
  const int steps = shared::packed_steps(rows, unit, static_cast<int>(gpu::book_bytes(weight)));
  return static_cast<uint32_t>(steps * rows * kTensorStepBytes + shared::kPackedStages * unit +
                               kSwizzled);
}

// x in the form for the kernels. The object owns the memory, and frees it in stream order.
class ArrangedInput {
 public:
  ArrangedInput(const View& x, Stream& stream)
      : x_(x), memory_(stream, static_cast<size_t>(2 * x.size(0) * x.size(1))) {
    const int64_t runs = x.size(0) * x.size(1) / shared::kArrangeXEach;
    gpu::launch(
        stream,
        {.op = "linear",
         .family = kFamilies.small_blocks,
         .kernel = gpu::KernelName("arrange_x"),
         .grid = {.x = gpu::blocks_for(runs, shared::kArrangeXThreads)},
         .threads = shared::kArrangeXThreads,
         .writes = gpu::Writes::results},
        shared::ArrangeXParams{
            .x = x.data, .arranged = memory_.as<void>(), .rows = x.size(0), .in = x.size(1)});
  }
  DType dtype() const { return x_.dtype; }
  int64_t rows() const { return x_.size(0); }
  int64_t in() const { return x_.size(1); }
  TensorLines lines() const {
    return {.dtype = x_.dtype,
            .data = memory_.as<const void>(),
            .lines = rows(),
            .depth = in(),
            .bytes = 2,
            .pitch = 2 * in()};
  }

 private:
  const View x_;
  gpu::Scratch memory_;
};

void multiply(const ArrangedInput& x, DType weight, shared::FewRowsParams few, uint32_t tiles,
              Stream& stream) {
  gpu::GpuDevice& device = gpu::device_of(stream);
  const Size size{.rows = x.rows(), .tiles = tiles, .units = x.in() / kUnit};
  const Choice choice = choose(size, device.properties().multiprocessors);
  few.tiles = static_cast<int32_t>(tiles);
  const bool alone = choice.clusters == 1;
  const gpu::Scratch partials(
      stream,
      alone ? 0
            : static_cast<size_t>(choice.clusters * kPair * choice.rows * shared::kPackedOuts) *
                  sizeof(float));
  shared::PackedGemmParams params{};
  params.x = static_cast<CudaDriver&>(device.driver()).tensor_map(x.lines().map(choice.rows / 2));
  params.few = few;
  params.row_tiles = static_cast<int32_t>(row_tiles(size, choice.rows));
  params.units = static_cast<int32_t>(all_units(size, choice.rows));
  params.partials = partials.as<float>();
  params.arrivals = device.streams().of(stream.handle).arrivals;
  gpu::KernelName kernel("gemm_packed", x.dtype(), name(weight));
  kernel.part(choice.rows == 64 ? "r64" : choice.rows == 128 ? "r128" : "r256");
  gpu::launch(stream,
              {.op = "linear",
               .family = kFamilies.of(weight),
               .kernel = kernel,
               .grid = {.x = static_cast<uint32_t>(kPair * choice.clusters)},
               .threads = shared::kPackedThreads,
               .shared_bytes = shared_bytes(static_cast<int>(choice.rows), weight),
               .reads_ahead = gpu::ReadsAhead::packed_weights,
               .writes = gpu::Writes::floats},
              params);
}

const char* refuse(const LinearArgs& args) {
  if (args.x.size(0) <= kFewRows || args.x.size(0) > kMostRows) return "takes 33 to 2,048 rows";
  if (gpu::float_number(args.x.dtype) > 2) return "takes x of f32, f16 and bf16";
  if (args.x.size(1) % kUnit != 0 || args.x.size(1) == 0) return "takes multiples of 128 inputs";
  for (const LinearPart& part : args.parts) {
    const DType weight = part.weight.dtype;
    if (!is_quantized(weight)) return "takes block types";
    if (part.weight.packing != gpu::kPlanesPacking) return "reads block types packed";
    if (gpu::product_kind(args.x.dtype, weight, args.may_round_to).split) {
      return "would round x more than the weight is";
    }
    if (part.weight.size(0) % kRun != 0) return "takes multiples of 8 outputs";
    if (args.x.size(0) > kMostByteRows && has_bytes(weight))
      return "takes 33 to 1,024 rows of 8 bits";
    if (part.y.dtype != args.x.dtype) return "writes x's type";
    if (part.y.stride(0) != part.weight.size(0)) return "writes whole rows of y";
    const Size size{args.x.size(0), tiles_of(part.weight.size(0)), args.x.size(1) / kUnit};
    if (all_units(size, kLeastRows) > kMostUnits / shared::kMatvecParts) {
      return "counts units of tiles in 32 bits";
    }
  }
  return gpu::refuse_tensor_shapes(args);
}

void run(const LinearArgs& args, Stream& stream) {
  gpu::ProductInput input("linear", args.x, stream);
  const DType type =
      gpu::product_kind(args.x.dtype, args.parts[0].weight.dtype, args.may_round_to).type;
  const ArrangedInput x(input.rounded(type), stream);
  const shared::FewRowsParams few{.x = nullptr,
                                  .partials = nullptr,
                                  .in = static_cast<int32_t>(x.in()),
                                  .rows = static_cast<int32_t>(x.rows()),
                                  .outs = shared::kPackedOuts,
                                  .splits = 1,
                                  .tiles = 0,
                                  .stages = shared::kPackedStages,
                                  .floats = args.x.dtype == DType::f32 ? 1 : 0,
                                  .part_count = 0,
                                  .parts = {}};
  gpu::each_weight_type(args.parts, [&](DType weight) {
    gpu::launch_parts(args, weight, {.outs = shared::kPackedOuts, .waves = 1}, few,
                      [&](const shared::FewRowsParams& filled, uint32_t tiles) {
                        multiply(x, weight, filled, tiles, stream);
                      });
  });
}

}  // namespace

const Impl<LinearArgs> linear_packed_tma{"tma_packed", refuse, run};

}  // namespace rbee::cuda
