#include "backends/cuda/ops/attention_tma.h"

#include <array>
#include <cmath>

#include "backends/cuda/cuda_driver.h"
#include "backends/gpu/gpu_device.h"
#include "backends/gpu/ops/attention.h"
#include "backends/shared/tensor_map_params.h"

namespace rbee::cuda {
namespace {

constexpr int64_t kTileWidth = 64;  // elements of a row in a box, 128 bytes
constexpr int64_t kMostElements = 256;

// As in kernels/attention_tma.cu.
struct Shape {
  const char* name;
  int64_t qk, v;  // the largest head
  int64_t keys;   // of a tile
  int64_t rows;   // queries of a block
  int64_t stages;
  uint32_t threads;
};
constexpr std::array kLong{
    Shape{"d40", 48, 40, 128, 128, 2, 384},   Shape{"d64", 64, 64, 128, 128, 2, 384},
    Shape{"d80", 80, 80, 128, 128, 2, 384},   Shape{"d128", 128, 128, 128, 128, 2, 384},
    Shape{"d160", 160, 160, 64, 128, 2, 384}, Shape{"d256", 256, 256, 64, 128, 2, 384}};
constexpr Shape kThreeConsumers{"d64_r192", 64, 64, 128, 192, 2, 512};
constexpr std::array kShort{
    Shape{"short_d40", 48, 40, 80, 64, 1, 128}, Shape{"short_d64", 64, 64, 80, 64, 1, 128},
    Shape{"short_d80", 80, 80, 80, 64, 1, 128}, Shape{"short_d160", 160, 160, 80, 64, 1, 128}};

// The work of a multiprocessor for the call, in queries. Blocks that see all keys finish in
// rounds; other blocks have many lengths, and the last ones are short.
double share(const AttentionArgs& args, const Shape& shape, int64_t multiprocessors) {
  const int64_t blocks =
      args.q.size(0) * args.q.size(1) * ((args.q.size(2) + shape.rows - 1) / shape.rows);
  const auto count = static_cast<double>(multiprocessors);
  const double rounds = static_cast<double>(blocks) / count;
  return (args.causal ? rounds : std::ceil(rounds)) * static_cast<double>(shape.rows);
}

const Shape& shape_for(const AttentionArgs& args, int64_t multiprocessors) {
  constexpr double kThreeToTwo = 0.85;  // a query's time, measured
  const auto fits = [&](const Shape& shape) {
    return args.k.size(-1) <= shape.qk && args.v.size(-1) <= shape.v;
  };
  for (const Shape& shape : kShort) {
    if (args.k.size(2) <= shape.keys && fits(shape)) return shape;
  }
  for (const Shape& shape : kLong) {
    if (!fits(shape)) continue;
    const bool wide = shape.qk == kThreeConsumers.qk &&
                      kThreeToTwo * share(args, kThreeConsumers, multiprocessors) <
                          share(args, shape, multiprocessors);
    return wide ? kThreeConsumers : shape;
  }
  return kLong.back();
}

// Tiles of queries, stages of keys and values, the barriers' line, and room to align them.
uint32_t shared_bytes(const Shape& shape) {
  const auto width = [](int64_t elements) {
    return (elements + kTileWidth - 1) / kTileWidth * kTileWidth * 2;
  };
  return static_cast<uint32_t>(shape.rows * width(shape.qk) +
                               shape.stages * shape.keys * (width(shape.qk) + width(shape.v)) +
                               1024 + 1024);
}

// (batch, heads, keys, elements) as boxes of a tile's rows.
TensorMapTiles tiles_of(const View& x, int64_t keys) {
  const auto size = [&](int axis) { return static_cast<uint64_t>(x.size(axis)); };
  // No step leads along an axis of size 1, whatever its stride is.
  const auto stride = [&](int axis) -> uint64_t {
    return x.size(axis) == 1 ? 16 : static_cast<uint64_t>(x.stride(axis)) * 2;
  };
  return {.dtype = x.dtype,
          .data = x.data,
          .sizes = {size(3), size(2), size(1), size(0)},
          .strides = {stride(2), stride(1), stride(0)},
          .box = {kTileWidth, static_cast<uint32_t>(keys), 1, 1}};
}

const char* refuse_maps(const View& x) {
  constexpr int64_t kMostSize = int64_t{1} << 31, kMostStride = int64_t{1} << 39;
  for (int axis = 0; axis < 3; ++axis) {
    if (x.size(axis) >= kMostSize) return "counts keys and heads in 32 bits";
    if (x.size(axis) > 1 && (x.stride(axis) <= 0 || x.stride(axis) >= kMostStride)) {
      return "takes keys and values that the copy engine can walk";
    }
  }
  return nullptr;
}

const char* refuse(const AttentionArgs& args) {
  const char* reason = gpu::refuse_attention_tiles(args.q, args.k, args.v, args.y, kMostElements);
  if (reason == nullptr) reason = refuse_maps(args.k);
  if (reason == nullptr) reason = refuse_maps(args.v);
  if (reason != nullptr) return reason;
  return gpu::shaped_scores(gpu::attention_params(args)) ? "scores are more than products"
                                                         : nullptr;
}

void run(const AttentionArgs& args, Stream& stream) {
  if (args.y.numel() == 0) return;
  if (args.k.numel() == 0) return gpu::attention.run(args, stream);
  gpu::GpuDevice& device = gpu::device_of(stream);
  auto& driver = static_cast<CudaDriver&>(device.driver());
  const Shape& shape = shape_for(args, device.properties().multiprocessors);
  const shared::TensorAttentionParams params{
      .keys = driver.tensor_map(tiles_of(args.k, shape.keys)),
      .values = driver.tensor_map(tiles_of(args.v, shape.keys)),
      .attention = gpu::attention_params(args)};
  gpu::launch(stream,
              {.op = "attention",
               .family = "attention_tma",
               .kernel = gpu::KernelName("attention_tma", args.k.dtype, shape.name),
               .grid = gpu::query_grid(params.attention, shape.rows),
               .threads = shape.threads,
               .shared_bytes = shared_bytes(shape)},
              params);
}

}  // namespace

const Impl<AttentionArgs> attention_tma{"tma", refuse, run};

}  // namespace rbee::cuda
