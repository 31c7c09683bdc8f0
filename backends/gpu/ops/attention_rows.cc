#include "backends/gpu/ops/attention_rows.h"

#include <algorithm>

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/ops/attention.h"

namespace rbee::gpu {
namespace {

using shared::AttentionParams;

constexpr int64_t kMostOfTiles = 256;   // elements of a head that kernels of query tiles take
constexpr uint32_t kJoinThreads = 256;  // as in kernels/attention_join.cu
constexpr int64_t kMostSplits = 256;    // as there
// A part's results are written and read again, as many bytes as four keys and values for each row.
// So a part needs enough keys to be worth it.
constexpr int64_t kFewestKeys = 64, kFewKeys = 256;

// A sequence has at most one partial tile, and no more tiles than its queries alone would need.
int64_t tiles_of(const AttentionParams& params, int64_t rows) {
  const int64_t group = params.heads / params.kv_heads;
  return std::min(params.q_len * group / rows + params.batch,
                  params.q_len * ((group + rows - 1) / rows));
}

// The number of parts that fills the machine. It depends only on host values, so that a captured
// launch stays right for every length.
int32_t splits_for(const AttentionParams& params, int64_t tiles, const Properties& device) {
  const int64_t blocks = std::max<int64_t>(tiles * params.kv_heads, 1);
  const int64_t group = params.heads / params.kv_heads;
  const int64_t keys = params.window > 0 ? std::min(params.kv_len, params.window) : params.kv_len;
  const int64_t each = std::clamp(2 * group, kFewestKeys, kFewKeys);
  return static_cast<int32_t>(
      std::clamp<int64_t>(std::min(device.multiprocessors / blocks, keys / each), 1, kMostSplits));
}

}  // namespace

const char* refuse_rows(const PagedAttentionArgs& args, int64_t most) {
  if (args.q.size(-1) <= kMostOfTiles) return "takes heads of more than 256 elements";
  if (narrow_cache(args)) return refuse_narrow_cache(args, most);
  return refuse_attention_tiles(args.q, args.k_cache, args.v_cache, args.y, most);
}

void launch_rows(const PagedAttentionArgs& args, const RowKernel& kernel, Stream& stream) {
  if (args.y.numel() == 0) return;
  constexpr const char* kOp = "paged_attention";
  const Properties& device = device_of(stream).properties();
  AttentionParams params = attention_params(args);
  const int64_t tiles = tiles_of(params, kernel.rows);
  params.splits = splits_for(params, tiles, device);
  const int64_t parts = params.splits == 1 ? 0 : params.q_len * params.heads * params.splits;
  const Scratch scratch(stream, static_cast<size_t>(parts * (params.v_dim + 2)) * sizeof(float));
  params.partial = scratch.as<float>();
  params.partial_stats = params.partial + parts * params.v_dim;
  launch(stream,
         {.op = kOp,
          .family = kernel.family,
          .kernel = kernel.name,
          .grid = {.x = static_cast<uint32_t>(tiles),
                   .y = static_cast<uint32_t>(params.kv_heads),
                   .z = static_cast<uint32_t>(params.splits)},
          .threads = kernel.threads,
          .shared_bytes = kernel.shared_bytes},
         params);
  if (params.splits == 1) return;
  KernelName join("attention_join");
  launch(stream,
         {.op = kOp,
          .family = "attention_join",
          .kernel = join.lanes(device.lane_count),
          .grid = {.x = static_cast<uint32_t>(params.q_len),
                   .y = static_cast<uint32_t>(params.heads),
                   .z = blocks_for(params.v_dim, 4 * device.lane_count)},
          .threads = kJoinThreads},
         params);
}

}  // namespace rbee::gpu
