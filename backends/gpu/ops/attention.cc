#include "backends/gpu/ops/attention.h"

#include <algorithm>

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/rows.h"
#include "backends/shared/kv_page.h"
#include "rbee/core/error.h"

namespace rbee::gpu {
namespace {

using shared::AttentionParams;
using shared::AttentionStrides;
using shared::AttentionType;

constexpr int64_t kPlainColumns = 128;   // as in kernels/attention_plain.cu
constexpr int64_t kPlainShared = 33280;  // bytes that a block for floats shares there

AttentionType type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return AttentionType::f32;
    case DType::f16:
      return AttentionType::f16;
    case DType::bf16:
      return AttentionType::bf16;
    case DType::f64:
      return AttentionType::f64;
    case DType::f8e4m3:
      return AttentionType::f8e4m3;
    case DType::q8_0:
      return AttentionType::q8_0;
    default:
      fail(Code::internal, "attention", "no kernel reads ", dtype);
  }
}

// (batch, heads, time, element)
AttentionStrides dense_strides(const View& x) {
  return {x.stride(0), x.stride(1), x.stride(2), x.stride(3)};
}

// (row, heads, element)
AttentionStrides ragged_strides(const View& x) {
  return {0, x.stride(1), x.stride(0), x.stride(2)};
}

// As many heads as the second-level cache can hold keys and values of at once; at least those of
// one key head.
int32_t turn_heads(const AttentionParams& params) {
  constexpr int64_t kCacheBytes = int64_t{32} << 20;
  const int64_t bytes = std::max<int64_t>(params.kv_len * (params.head_dim + params.v_dim) * 2, 1);
  int64_t kv_heads = std::clamp<int64_t>(kCacheBytes / bytes, 1, params.kv_heads);
  while (params.kv_heads % kv_heads != 0) --kv_heads;
  return static_cast<int32_t>(params.heads / params.kv_heads * kv_heads);
}

// One block of threads for each tile of queries, head and part of the result's columns.
void run_plain(const char* op, const AttentionParams& params, DType dtype, Stream& stream) {
  const Properties& device = device_of(stream).properties();
  const bool wide = dtype == DType::f64;
  const bool small = !wide && device.shared_per_block < kPlainShared;
  const int64_t tile = wide || small ? 32 : 64;  // as in kernels/attention_plain.cu
  KernelName kernel("attention_plain", wide ? DType::f64 : DType::f32, small ? "s32" : "");
  kernel.lanes(device.lane_count);
  Grid grid = query_grid(params, tile);
  grid.z = blocks_for(params.v_dim, kPlainColumns);
  launch(stream,
         {.op = op, .family = "attention_plain", .kernel = kernel, .grid = grid, .threads = 256},
         params);
}

void run_attention(const AttentionArgs& args, Stream& stream) {
  if (args.y.numel() == 0) return;
  run_plain("attention", attention_params(args), args.q.dtype, stream);
}

void run_paged_attention(const PagedAttentionArgs& args, Stream& stream) {
  if (args.y.numel() == 0) return;
  run_plain("paged_attention", attention_params(args), args.q.dtype, stream);
}

}  // namespace

AttentionParams attention_params(const AttentionArgs& args) {
  AttentionParams params{};
  params.q = args.q.data;
  params.k = args.k.data;
  params.v = args.v.data;
  params.y = args.y.data;
  params.q_at = dense_strides(args.q);
  params.k_at = dense_strides(args.k);
  params.v_at = dense_strides(args.v);
  params.y_at = dense_strides(args.y);
  if (args.mask) {
    params.mask = args.mask.as<float>();
    params.mask_at = dense_strides(args.mask);
  }
  if (args.alibi_slopes) {
    params.slopes = args.alibi_slopes.as<float>();
    params.slope_step = args.alibi_slopes.stride(0);
  }
  params.batch = args.q.size(0);
  params.q_len = args.q.size(2);
  params.kv_len = args.k.size(2);
  params.window = args.window;
  params.heads = static_cast<int32_t>(args.q.size(1));
  params.kv_heads = static_cast<int32_t>(args.k.size(1));
  params.head_dim = static_cast<int32_t>(args.q.size(3));
  params.v_dim = static_cast<int32_t>(args.y.size(3));
  params.scale = args.scale;
  params.softcap = args.softcap;
  params.q_type = type_of(args.q.dtype);
  params.kv_type = type_of(args.k.dtype);
  params.causal = args.causal;
  params.turn_heads = turn_heads(params);
  params.splits = 1;
  return params;
}

AttentionParams attention_params(const PagedAttentionArgs& args) {
  AttentionParams params{};
  params.q = args.q.data;
  params.k = args.k_cache.data;
  params.v = args.v_cache.data;
  params.y = args.y.data;
  params.q_at = ragged_strides(args.q);
  params.k_at = dense_strides(args.k_cache);
  params.v_at = dense_strides(args.v_cache);
  params.y_at = ragged_strides(args.y);
  params.sinks = args.sinks.as<const float>();
  params.key_ends = args.key_ends.as<const int32_t>();
  params.slopes = args.alibi_slopes.as<const float>();
  params.slope_step = 1;
  params.seq_starts = args.seq_starts.as<int32_t>();
  params.kv_lens = args.kv_lens.as<int32_t>();
  params.block_table = args.block_table.as<int32_t>();
  params.starts_step = args.seq_starts.stride(0);
  params.lens_step = args.kv_lens.stride(0);
  params.table_row = args.block_table.stride(0);
  params.table_step = args.block_table.stride(1);
  params.batch = args.kv_lens.size(0);
  params.q_len = args.q.size(0);
  params.block_size = shared::make_divider(static_cast<uint32_t>(args.k_cache.size(2)));
  params.kv_len = args.block_table.size(1) * args.k_cache.size(2);
  params.window = args.window;
  params.heads = static_cast<int32_t>(args.q.size(1));
  params.kv_heads = static_cast<int32_t>(args.k_cache.size(1));
  params.head_dim = static_cast<int32_t>(args.q.size(2));
  params.v_dim = params.head_dim;
  params.scale = args.scale;
  params.softcap = args.softcap;
  params.q_type = type_of(args.q.dtype);
  params.kv_type = type_of(args.k_cache.dtype);
  params.causal = true;
  params.turn_heads = turn_heads(params);
  params.splits = 1;
  return params;
}

Grid query_grid(const AttentionParams& params, int64_t tile) {
  // Every sequence ends in at most one partial tile, and none has fewer rows than tiles.
  const int64_t tiles = params.block_table == nullptr
                            ? params.batch * ((params.q_len + tile - 1) / tile)
                            : std::min(params.q_len, params.q_len / tile + params.batch);
  return {.x = static_cast<uint32_t>(tiles * params.turn_heads),
          .y = static_cast<uint32_t>(params.heads / params.turn_heads)};
}

bool shaped_scores(const AttentionParams& params) {
  return params.softcap > 0 || params.slopes != nullptr || params.mask != nullptr ||
         !(params.scale > 0);
}

const char* refuse_attention_tiles(const View& q, const View& k, const View& v, const View& y,
                                   int64_t most) {
  if (k.dtype != DType::f16 && k.dtype != DType::bf16) return "keys are not f16 or bf16";
  if (q.dtype != k.dtype && q.dtype != DType::f32) return "q is neither f32 nor of the keys' type";
  if (std::max(k.size(-1), v.size(-1)) > most) return "heads have too many elements";
  for (const View* view : {&q, &k, &v, &y}) {
    if (!vector_rows(*view)) return "rows cannot be read 16 bytes at a time";
  }
  return nullptr;
}

int64_t span_bytes(const View& view) {
  int64_t elements = 1;
  for (int axis = 0; axis < view.rank; ++axis) {
    elements += (view.size(axis) - 1) * view.stride(axis);
  }
  return elements * info(view.dtype).block_bytes;
}

bool narrow_cache(const PagedAttentionArgs& args) {
  return args.k_cache.dtype == DType::f8e4m3 || args.k_cache.packing == shared::kPagePacking;
}

const char* refuse_pages(const View& cache) {
  const int64_t page = cache.size(2) * cache.size(3);
  if (shared::page_start(page) % 8 != 0) return "pages are not multiples of 8 bytes";
  // The kernel counts rows in 31 bits.
  if (cache.size(0) * cache.size(1) * cache.size(2) > INT32_MAX) return "too many rows";
  return nullptr;
}

const char* refuse_narrow_cache(const PagedAttentionArgs& args, int64_t most) {
  if (args.q.dtype != DType::f16 && args.q.dtype != DType::bf16 && args.q.dtype != DType::f32) {
    return "q is not f32, f16 or bf16";
  }
  if (args.q.size(-1) > most) return "heads have too many elements";
  if (!vector_rows(args.q) || !vector_rows(args.y)) return "q cannot be read 16 bytes at a time";
  if (args.k_cache.packing == shared::kPagePacking) return refuse_pages(args.k_cache);
  if (vector_rows(args.k_cache) && vector_rows(args.v_cache)) return nullptr;
  return "keys cannot be read 8 bytes at a time";
}

const Impl<AttentionArgs> attention{"gpu", never_refuse, run_attention};
const Impl<PagedAttentionArgs> paged_attention{"gpu", never_refuse, run_paged_attention};

}  // namespace rbee::gpu
