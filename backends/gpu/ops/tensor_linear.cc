#include "backends/gpu/ops/tensor_linear.h"

#include <limits>

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/ops/float_number.h"

namespace rbee::gpu {
namespace {

constexpr int64_t kFewRows = 8;  // up to this many, reading the weight once per row is as good

bool aligned(const View& view, uintptr_t bytes) {
  return reinterpret_cast<uintptr_t>(view.data) % bytes == 0;
}

const char* refuse_part(const View& x, const LinearPart& part) {
  const View& weight = part.weight;
  // Rows of 16-bit operands are then multiples of 16 bytes.
  if (weight.size(1) % 8 != 0) return "rows are not multiples of 16 bytes";
  if (!aligned(weight, 16) || !aligned(part.y, 16)) return "weight or y is not 16-byte aligned";
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / 2;
  if (x.size(0) > kMost || weight.size(0) > kMost || weight.size(1) > kMost) {
    return "more than 2^30 rows or columns";
  }
  return nullptr;
}

int64_t tile_count(const TensorTile& tile, int64_t rows, int64_t outs) {
  return (rows + tile.rows - 1) / tile.rows * ((outs + tile.outs - 1) / tile.outs);
}

void run_part(const TensorTiles& tiles, const View& x, const LinearPart& part, Stream& stream) {
  const View& weight = part.weight;
  const auto depth = static_cast<int32_t>(x.size(1));
  const shared::GemmParams params{.x = x.data,
                                  .weight = weight.data,
                                  .bias = part.bias.data,
                                  .y = part.y.data,
                                  .rows = static_cast<int32_t>(x.size(0)),
                                  .outs = static_cast<int32_t>(weight.size(0)),
                                  .depth = depth,
                                  .y_type = float_number(part.y.dtype),
                                  .y_row = part.y.stride(0),
                                  .x_row = depth,
                                  .weight_row = depth,
                                  .x_matrix = 0,
                                  .weight_matrix = 0,
                                  .y_matrix = 0};
  launch_tensor_product(tiles, {.op = "linear", .type = weight.dtype, .params = params}, stream);
}

}  // namespace

int64_t block_places(const Properties& device) {
  const bool pairs = device.architecture.starts_with("gfx") && device.lane_count == 32;
  return pairs ? device.multiprocessors / 2 : device.multiprocessors;
}

void launch_tensor_product(const TensorTiles& tiles, const TensorProduct& product, Stream& stream) {
  const int64_t rows = product.params.rows, outs = product.params.outs;
  const bool large = product.matrices * tile_count(tiles.large, rows, outs) >=
                     block_places(device_of(stream).properties());
  const TensorTile& tile = large ? tiles.large : tiles.small;
  launch(stream,
         {.op = product.op,
          .family = tiles.family,
          .kernel = KernelName("gemm", product.type, tile.name),
          .grid = {.x = static_cast<uint32_t>(tile_count(tile, rows, outs)),
                   .y = static_cast<uint32_t>(product.matrices)},
          .threads = tile.threads,
          .shared_bytes = tile.shared_bytes},
         product.params);
}

const char* refuse_tensor_shapes(const LinearArgs& args) {
  if (args.x.size(0) <= kFewRows) return "takes more than 8 rows";
  if (!aligned(args.x, 16)) return "x is not 16-byte aligned";
  for (const LinearPart& part : args.parts) {
    if (const char* reason = refuse_part(args.x, part)) return reason;
  }
  return nullptr;
}

const char* refuse_tensor_linear(const LinearArgs& args) {
  for (const LinearPart& part : args.parts) {
    const DType weight = part.weight.dtype;
    if (weight != DType::f16 && weight != DType::bf16) return "takes f16 and bf16 weights";
    if (args.x.dtype != weight) return "takes operands of one type";
  }
  return refuse_tensor_shapes(args);
}

void run_tensor_linear(const TensorTiles& tiles, const LinearArgs& args, Stream& stream) {
  for (const LinearPart& part : args.parts) run_part(tiles, args.x, part, stream);
}

}  // namespace rbee::gpu
