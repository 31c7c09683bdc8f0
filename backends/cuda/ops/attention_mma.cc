#include "backends/cuda/ops/attention_mma.h"

#include <algorithm>

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/ops/attention.h"

namespace rbee::cuda {
namespace {

using shared::AttentionParams;

constexpr int64_t kKeys = 64;  // as in kernels/attention_mma.cu
constexpr int64_t kMostElements = 256;

// A kernel's head size and tile, as in kernels/attention_mma.cu.
struct Tile {
  int64_t dim;
  const char* name;
  bool narrow;  // for 8-bit caches too
  int64_t rows() const { return dim <= 128 ? 128 : 64; }
  int64_t shared_bytes() const { return (rows() + 2 * kKeys) * (dim + 8) * 2; }
};

constexpr Tile kTiles[] = {{32, "d32", false},  {64, "d64", true},    {96, "d96", false},
                           {128, "d128", true}, {192, "d192", false}, {256, "d256", true}};

const Tile& tile_for(const AttentionParams& params, bool narrow) {
  const int64_t dim = std::max(params.head_dim, params.v_dim);
  return *std::find_if(std::begin(kTiles), std::end(kTiles), [&](const Tile& tile) {
    return dim <= tile.dim && (tile.narrow || !narrow);
  });
}

void run_mma(const char* op, const AttentionParams& params, DType keys, Stream& stream) {
  const Tile& tile = tile_for(params, info(keys).block_bytes != 2);
  gpu::launch(stream,
              {.op = op,
               .family = "attention_mma",
               .kernel = gpu::KernelName("attention_mma", keys, tile.name),
               .grid = gpu::query_grid(params, tile.rows()),
               .threads = 128,
               .shared_bytes = static_cast<uint32_t>(tile.shared_bytes())},
              params);
}

const char* refuse_dense(const AttentionArgs& args) {
  return gpu::refuse_attention_tiles(args.q, args.k, args.v, args.y, kMostElements);
}

const char* refuse_paged(const PagedAttentionArgs& args) {
  if (gpu::narrow_cache(args)) return gpu::refuse_narrow_cache(args, kMostElements);
  return gpu::refuse_attention_tiles(args.q, args.k_cache, args.v_cache, args.y, kMostElements);
}

void run_dense(const AttentionArgs& args, Stream& stream) {
  if (args.y.numel() == 0) return;
  run_mma("attention", gpu::attention_params(args), args.k.dtype, stream);
}

void run_paged(const PagedAttentionArgs& args, Stream& stream) {
  if (args.y.numel() == 0) return;
  run_mma("paged_attention", gpu::attention_params(args), args.k_cache.dtype, stream);
}

}  // namespace

const Impl<AttentionArgs> attention_mma{"mma", refuse_dense, run_dense};
const Impl<PagedAttentionArgs> paged_attention_mma{"mma", refuse_paged, run_paged};

}  // namespace rbee::cuda
