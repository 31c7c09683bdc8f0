#include "backends/gpu/ops/linear_few_rows.h"

#include <algorithm>

#include "backends/api/dispatch_blocks.h"
#include "backends/gpu/gpu_device.h"
#include "backends/gpu/ops/pack_weight.h"
#include "backends/gpu/ops/product_input.h"
#include "backends/gpu/ops/rms_norm.h"
#include "backends/gpu/rows.h"
#include "backends/shared/few_sum_params.h"
#include "backends/shared/packed_weight.h"

namespace rbee::gpu {
namespace {

using shared::FewRowsParams;

// With fewer rows linear_few is as fast or faster: it multiplies packed weights as integers,
// and reads weights once for up to 8 rows.
constexpr int64_t kLeastPackedRows = 5, kLeastPlainRows = 9;
constexpr int64_t kMostRows = 64;
// As in PackedUnit.
constexpr int64_t kUnitElements = 128;

// A launch's values besides its parts.
struct Tile {
  int64_t rows;     // that the kernel is made for
  int64_t units;    // of a row of the weight
  int64_t unit;     // bytes of one of all rows
  int64_t stage;    // bytes
  int64_t book;     // bytes
  int64_t x_rows;   // of x
  int64_t at_once;  // blocks that the device holds
};

// Of a row of the weight.
int64_t unit_bytes(DType weight) {
  if (!is_quantized(weight)) return row_bytes(weight, kUnitElements);
  int64_t bytes = 0;
  dispatch_blocks("linear", weight, [&]<typename Block>() {
    using Unit = shared::PackedUnit<Block>;
    static_assert(Unit::kElements == kUnitElements);
    bytes = Unit::kBytes;
  });
  return bytes;
}

Tile tile_of(const FewRowsKernels& kernels, const Properties& device, DType weight, const View& x) {
  Tile tile{};
  tile.x_rows = x.size(0);
  tile.rows = tile.x_rows <= 16 ? 16 : tile.x_rows <= 32 ? 32 : 64;
  tile.units = (x.size(1) + kUnitElements - 1) / kUnitElements;
  tile.unit = kernels.outs * unit_bytes(weight);
  tile.book = book_bytes(weight);
  tile.stage = tile.unit + tile.rows * shared::kFewRowBytes;
  tile.at_once = kernels.blocks * device.multiprocessors;
  return tile;
}

// Blocks share a multiprocessor's memory; each block also reserves one KiB.
int64_t stages_of(const FewRowsKernels& kernels, const Properties& device, const Tile& tile) {
  if (!kernels.ring) return 0;
  constexpr int64_t kSetAside = 1024;
  const int64_t room =
      (device.shared_per_block + kSetAside) / kernels.blocks - kSetAside - tile.book;
  return std::clamp<int64_t>(room / tile.stage, 2, shared::kFewMostStages);
}

// The number of blocks that share a tile's depth. The cost counts in units: a block takes its own
// and about four more to begin and end; there are as many rounds as hold all blocks; and
// partial sums that are written and read again count by their bytes.
int64_t splits_of(const Tile& tile, int64_t outs, int64_t tiles) {
  constexpr int64_t kMostSplits = 16, kBorder = 4;
  const double partial = 2.0 * sizeof(float) * static_cast<double>(tiles * tile.x_rows * outs);
  const double round = static_cast<double>(tile.at_once * tile.unit);
  int64_t best = 1;
  double least = 0;
  for (int64_t splits = 1; splits <= std::min(kMostSplits, tile.units); ++splits) {
    const int64_t rounds = (tiles * splits + tile.at_once - 1) / tile.at_once;
    const int64_t share = (tile.units + splits - 1) / splits;
    double cost = static_cast<double>(rounds * (share + kBorder));
    if (splits > 1) cost += static_cast<double>(splits) * partial / round;
    if (splits == 1 || cost < least) {
      best = splits;
      least = cost;
    }
  }
  return best;
}

// Most packs of a row for a thread.
constexpr int64_t kMostNormPacks = 4;

int64_t norm_packs(const View& y) {
  const int64_t count = 16 / info(y.dtype).block_bytes;
  return (y.size(1) / count + shared::kFewNormThreads - 1) / shared::kFewNormThreads;
}

void add_up_and_norm(const FewRowsParams& params, const LinearNormArgs& args, Stream& stream) {
  const shared::FewNormParams norm{.partials = params.partials,
                                   .bias = args.bias.data,
                                   .residual = args.residual.data,
                                   .norm_weight = args.norm_weight.data,
                                   .sum = args.sum.data,
                                   .y = args.y.data,
                                   .rows = params.rows,
                                   .dim = static_cast<int32_t>(args.y.size(1)),
                                   .outs = params.outs,
                                   .splits = params.splits,
                                   .eps = args.eps};
  KernelName kernel("few_norm", args.y.dtype, norm_packs(args.y) == 1 ? "p1" : "p4");
  kernel.lanes(device_of(stream).properties().lane_count);
  launch(stream,
         {.op = "linear_norm",
          .family = "few_sum",
          .kernel = kernel,
          .grid = {.x = static_cast<uint32_t>(params.rows)},
          .threads = shared::kFewNormThreads,
          .writes = Writes::floats},
         norm);
}

// The step after the product; it adds the parts of a product that is split.
void finish(const FewRowsParams& params, DType x, const LinearNormArgs* norm, Stream& stream) {
  if (norm == nullptr) {
    if (params.splits > 1) add_up(params, params.floats != 0 ? DType::f32 : x, stream);
  } else if (params.splits > 1) {
    add_up_and_norm(params, *norm, stream);
  } else {
    add_rms_norm.run({norm->sum, norm->residual, norm->norm_weight, norm->sum, norm->y, norm->eps},
                     stream);
  }
}

// norm: follows the sum; null: none.
void start(const FewRowsKernels& kernels, const Tile& tile, DType x, DType weight,
           FewRowsParams params, uint32_t tiles, const LinearNormArgs* norm, Stream& stream) {
  params.tiles = static_cast<int32_t>(tiles);
  params.splits = static_cast<int32_t>(splits_of(tile, kernels.outs, tiles));
  const int64_t sums =
      params.splits > 1 ? int64_t{tiles} * params.splits * params.rows * kernels.outs : 0;
  const Scratch partials(stream, static_cast<size_t>(sums) * sizeof(float));
  params.partials = partials.as<float>();
  KernelName kernel(kernels.prefix, x, name(weight));
  kernel.part(tile.rows == 16 ? "n2" : tile.rows == 32 ? "n4" : "n8");
  const bool packed = is_quantized(weight);
  const Launch what{.op = "linear",
                    .family = packed ? kernels.families.of(weight) : kernels.plain,
                    .kernel = kernel,
                    .grid = {.x = tiles, .y = static_cast<uint32_t>(params.splits)},
                    .threads = kernels.threads,
                    .shared_bytes = static_cast<uint32_t>(params.stages * tile.stage),
                    .reads_ahead = packed ? ReadsAhead::packed_weights : ReadsAhead::nothing,
                    .writes = Writes::floats};
  if (kernels.start != nullptr) {
    kernels.start(what, params, x, tile.rows, stream);
  } else {
    launch(stream, what, params);
  }
  finish(params, x, norm, stream);
}

// x: in 16 bits.
void run_type(const FewRowsKernels& kernels, const LinearArgs& args, const View& x, DType weight,
              const LinearNormArgs* norm, Stream& stream) {
  const Properties& device = device_of(stream).properties();
  const Tile tile = tile_of(kernels, device, weight, x);
  const FewRowsParams params{.x = x.data,
                             .partials = nullptr,
                             .in = static_cast<int32_t>(x.size(1)),
                             .rows = static_cast<int32_t>(x.size(0)),
                             .outs = static_cast<int32_t>(kernels.outs),
                             .splits = 1,
                             .tiles = 0,
                             .stages = static_cast<int32_t>(stages_of(kernels, device, tile)),
                             .floats = args.x.dtype == DType::f32 ? 1 : 0,
                             .part_count = 0,
                             .parts = {}};
  launch_parts(args, weight, {.outs = kernels.outs, .waves = 1}, params,
               [&](const FewRowsParams& filled, uint32_t tiles) {
                 start(kernels, tile, x.dtype, weight, filled, tiles, norm, stream);
               });
}

// The conditions of both kinds of weights on x. least: rows.
const char* refuse_x(const View& x, int64_t least) {
  if (x.size(0) < least || x.size(0) > kMostRows) {
    return least == kLeastPackedRows ? "takes 5 to 64 rows" : "takes 9 to 64 rows";
  }
  if (!aligned(x.data)) return "reads x 16 bytes at a time";
  if (x.size(1) >= int64_t{1} << 25) return "counts elements of x in 32 bits";
  return nullptr;
}

void run_packed(const FewRowsKernels& kernels, const LinearArgs& args, const LinearNormArgs* norm,
                Stream& stream) {
  ProductInput input("linear", args.x, stream);
  each_weight_type(args.parts, [&](DType weight) {
    const ProductKind kind = product_kind(args.x.dtype, weight, args.may_round_to);
    run_type(kernels, args, input.rounded(kind.type), weight, norm, stream);
  });
}

// The layer before a norm; its product is in the sum's place for a while.
LinearPart part_of(const LinearNormArgs& args) {
  return {.weight = args.weight, .bias = args.bias, .y = args.sum};
}

const char* refuse_norm(const LinearNormArgs& args) {
  const int64_t count = 16 / info(args.y.dtype).block_bytes;
  if (args.y.size(1) == 0 || args.y.size(1) % count != 0) return "takes rows of whole 16 bytes";
  if (norm_packs(args.y) > kMostNormPacks) return "rows are too long";
  for (const View* view : {&args.residual, &args.norm_weight, &args.sum, &args.y}) {
    if (!aligned(view->data)) return "reads rows 16 bytes at a time";
  }
  return aligned(args.bias.data) ? nullptr : "reads the bias 16 bytes at a time";
}

}  // namespace

const char* refuse_few_packed(const LinearArgs& args) {
  const DType x = args.x.dtype;
  if (x != DType::f16 && x != DType::bf16 && x != DType::f32) {
    return "takes x of f32, f16 and bf16";
  }
  for (const LinearPart& part : args.parts) {
    if (!is_quantized(part.weight.dtype)) return "takes block types";
    if (part.weight.packing != kPlanesPacking) return "reads block types packed";
  }
  return refuse_x(args.x, kLeastPackedRows);
}

const char* refuse_few_plain(const LinearArgs& args) {
  const DType x = args.x.dtype;
  if (x != DType::f16 && x != DType::bf16) return "takes x of f16 and bf16";
  if (args.x.size(1) % 8 != 0) return "rows are not multiples of 16 bytes";
  for (const LinearPart& part : args.parts) {
    if (part.weight.dtype != x) return "takes operands of one type";
    if (!aligned(part.weight.data)) return "reads weights 16 bytes at a time";
    if (part.y.dtype != x) return "writes x's type";
  }
  return refuse_x(args.x, kLeastPlainRows);
}

void add_up(const FewRowsParams& params, DType dtype, Stream& stream) {
  const int64_t threads = int64_t{params.tiles} * params.rows * (params.outs / shared::kFewSumOuts);
  launch(stream,
         {.op = "linear",
          .family = "few_sum",
          .kernel = KernelName("few_sum", dtype),
          .grid = {.x = blocks_for(threads, shared::kFewSumThreads)},
          .threads = shared::kFewSumThreads,
          .writes = Writes::floats},
         params);
}

void add_up_parts(const FewParts& parts, const LinearPart& to, Stream& stream) {
  const int64_t outs = to.y.size(1);
  FewRowsParams params{};
  params.partials = parts.partials;
  params.rows = static_cast<int32_t>(parts.rows);
  params.outs = static_cast<int32_t>(parts.outs);
  params.splits = static_cast<int32_t>(parts.splits);
  params.tiles = static_cast<int32_t>((outs + parts.outs - 1) / parts.outs);
  params.part_count = 1;
  params.parts[0] = {
      .weight = nullptr, .bias = to.bias.data, .y = to.y.data, .outs = outs, .first_block = 0};
  add_up(params, to.y.dtype, stream);
}

void run_few_packed(const FewRowsKernels& kernels, const LinearArgs& args, Stream& stream) {
  run_packed(kernels, args, nullptr, stream);
}

void run_few_plain(const FewRowsKernels& kernels, const LinearArgs& args, Stream& stream) {
  run_type(kernels, args, args.x, args.x.dtype, nullptr, stream);
}

const char* refuse_few_packed_norm(const LinearNormArgs& args) {
  const LinearPart part = part_of(args);
  const char* reason = refuse_few_packed({.x = args.x, .parts = {&part, 1}});
  return reason != nullptr ? reason : refuse_norm(args);
}

const char* refuse_few_plain_norm(const LinearNormArgs& args) {
  const LinearPart part = part_of(args);
  const char* reason = refuse_few_plain({.x = args.x, .parts = {&part, 1}});
  return reason != nullptr ? reason : refuse_norm(args);
}

void run_few_packed_norm(const FewRowsKernels& kernels, const LinearNormArgs& args,
                         Stream& stream) {
  const LinearPart part = part_of(args);
  run_packed(kernels, {.x = args.x, .parts = {&part, 1}}, &args, stream);
}

void run_few_plain_norm(const FewRowsKernels& kernels, const LinearNormArgs& args, Stream& stream) {
  const LinearPart part = part_of(args);
  run_type(kernels, {.x = args.x, .parts = {&part, 1}}, args.x, args.x.dtype, &args, stream);
}

}  // namespace rbee::gpu
