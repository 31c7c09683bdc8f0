#include <algorithm>
#include <array>

#include "backends/api/kernel_table.h"
#include "backends/gpu/gpu_device.h"
#include "backends/gpu/ops/attention.h"
#include "backends/gpu/rows.h"
#include "backends/gpu/run_first.h"
#include "backends/shared/kv_page.h"

namespace rbee::gpu {
namespace {

using shared::AttentionParams;

constexpr int64_t kWaves = 4;                      // of a block, as in kernels/attention_decode.cu
constexpr int64_t kLeastShare = 64;                // see DecodeKernel
constexpr int64_t kMostSplits = 256;               // as in kernels/attention_merge.h
constexpr int64_t kMostBytes = int64_t{32} << 30;  // kernels count units of 8 bytes in 32 bits
constexpr int64_t kQueriesOfSequence = 4;          // with more, kernels that share keys are better

// Bytes that a block for 8 heads of more than 128 elements shares (DecodeTile::Shared in
// kernels/attention_decode.h).
constexpr int64_t kWideShared = 41856;

// The kernels' numbers of heads that share a key head.
int64_t heads_together(int64_t group, int64_t dim, DType cache, const Properties& device) {
  if (group == 1) return 1;
  if (dim > 128 && device.shared_per_block < kWideShared) return 4;
  return group <= 4 || cache == DType::f32 ? 4 : 8;
}

const char* refuse_shape(const View& k, const View& v, int64_t head_dim, int64_t v_dim) {
  if (std::max(head_dim, v_dim) > 256) return "heads have more than 256 elements";
  if (k.packing == shared::kPagePacking) return refuse_pages(k);
  if (k.dtype != DType::f32 && k.dtype != DType::f16 && k.dtype != DType::bf16 &&
      k.dtype != DType::f8e4m3) {
    return "keys are not f32, f16, bf16, f8e4m3 or q8_0";
  }
  if (!vector_rows(k) || !vector_rows(v)) return "keys cannot be read 16 bytes at a time";
  if (span_bytes(k) > kMostBytes || span_bytes(v) > kMostBytes) return "more than 32 GiB of keys";
  return nullptr;
}

const char* refuse_dense(const AttentionArgs& args) {
  if (args.q.dtype == DType::f64) return "f64 needs sums in double";
  if (args.q.size(2) > kQueriesOfSequence) return "many queries";
  return refuse_shape(args.k, args.v, args.q.size(3), args.y.size(3));
}

const char* refuse_paged(const PagedAttentionArgs& args) {
  if (args.q.dtype == DType::f64) return "f64 needs sums in double";
  if (args.q.size(0) > kQueriesOfSequence * args.kv_lens.size(0)) return "many queries";
  return refuse_shape(args.k_cache, args.v_cache, args.q.size(2), args.q.size(2));
}

// Blocks that run on a multiprocessor at once, as the kernels' registers allow (blocks_held() in
// kernels/attention_decode.cu); more blocks would wait. `wide`: a lane holds two packs of a
// key.
int64_t blocks_each(int64_t together, bool wide, const Properties& device) {
  const bool few = together * (wide ? 2 : 1) <= 4;
  if (device.lane_count == 64) return few ? 2 : 1;
  return few ? 4 : 3;
}

// The number of parts that fills the machine. It depends only on host values, so that a captured
// launch stays right for every length.
int64_t splits_for(const AttentionParams& params, int64_t blocks, int64_t at_once,
                   int64_t least_share, const Properties& device) {
  if (blocks > kArrivalCounters || !device.device_fences) return 1;
  int64_t keys = params.kv_len;
  if (params.window > 0) keys = std::min(keys, params.window);
  const int64_t wanted = (at_once + blocks - 1) / blocks;
  const int64_t useful = std::max<int64_t>(keys / least_share, 1);
  return std::min({wanted, useful, kMostSplits});
}

DecodeKernel decode_kernel(const AttentionParams& params, DType cache, const Properties& device) {
  const int64_t dim = std::max(params.head_dim, params.v_dim);
  const int64_t together = heads_together(params.heads / params.kv_heads, dim, cache, device);
  const bool wide = cache == DType::f32 && dim > 128;
  DecodeKernel kernel{.family = "attention_decode",
                      .name = KernelName("attention_decode", cache),
                      .heads = together,
                      .blocks_each = blocks_each(together, wide, device),
                      .least_share = kLeastShare};
  kernel.name.part(dim <= 64 ? "d64" : dim <= 128 ? "d128" : "d256");
  kernel.name.part(together == 1 ? "h1" : together == 4 ? "h4" : "h8").lanes(device.lane_count);
  return kernel;
}

void run(const char* op, const AttentionParams& params, DType cache, Stream& stream) {
  launch_decode(op, params, decode_kernel(params, cache, device_of(stream).properties()), stream);
}

void run_dense(const AttentionArgs& args, Stream& stream) {
  if (args.y.numel() == 0) return;
  run("attention", attention_params(args), args.k.dtype, stream);
}

void run_paged(const PagedAttentionArgs& args, Stream& stream) {
  if (args.y.numel() == 0) return;
  run("paged_attention", attention_params(args), args.k_cache.dtype, stream);
}

// Rows of a view along its first axis.
View rows_of(View view, int64_t first, int64_t count) {
  view.data = view.as<std::byte>() + first * view.stride(0) * info(view.dtype).block_bytes;
  view.sizes[0] = count;
  return view;
}

// Sequences [first, first + count). q and y stay whole: seq_starts names their rows.
PagedAttentionArgs sequences_of(PagedAttentionArgs args, int64_t first, int64_t count) {
  args.seq_starts = rows_of(args.seq_starts, first, count + 1);
  args.kv_lens = rows_of(args.kv_lens, first, count);
  args.block_table = rows_of(args.block_table, first, count);
  args.single_queries = 0;
  return args;
}

const char* refuse_split(const PagedAttentionArgs& args) {
  const int64_t others = args.kv_lens.size(0) - args.single_queries;
  if (args.single_queries == 0 || others == 0) return "sequences are of one kind";
  if (args.q.size(0) - args.single_queries <= kQueriesOfSequence * others) return "few queries";
  return nullptr;
}

void run_split(const PagedAttentionArgs& args, Stream& stream) {
  const Slot<PagedAttentionArgs> kernels = stream.device->kernels().paged_attention;
  const int64_t singles = args.single_queries;
  PagedAttentionArgs decode = sequences_of(args, 0, singles);
  decode.q = rows_of(decode.q, 0, singles);
  decode.y = rows_of(decode.y, 0, singles);
  run_first(kernels, decode, stream);
  run_first(kernels, sequences_of(args, singles, args.kv_lens.size(0) - singles), stream);
}

}  // namespace

void launch_decode(const char* op, AttentionParams params, const DecodeKernel& kernel,
                   Stream& stream) {
  GpuDevice& owner = device_of(stream);
  const Properties& device = owner.properties();
  const int64_t rows = params.block_table == nullptr ? params.batch * params.q_len : params.q_len;
  const int64_t group = params.heads / params.kv_heads;
  const int64_t head_blocks = params.kv_heads * ((group + kernel.heads - 1) / kernel.heads);
  const int64_t at_once = device.multiprocessors * kernel.blocks_each;
  params.splits = static_cast<int32_t>(
      splits_for(params, rows * head_blocks, at_once, kernel.least_share, device));
  params.least_share = static_cast<int32_t>(kernel.least_share);
  const int64_t parts = params.splits == 1 ? 0 : rows * params.heads * params.splits;
  const Scratch scratch(stream, static_cast<size_t>(parts * (params.v_dim + 2)) * sizeof(float));
  params.partial = scratch.as<float>();
  params.partial_stats = params.partial + parts * params.v_dim;
  params.arrivals = owner.streams().of(stream.handle).arrivals;
  // Blocks of many sequences that start early are spread unevenly: the previous kernel's blocks are
  // in their way.
  const bool few = rows * head_blocks <= at_once / 4;
  launch(stream,
         {.op = op,
          .family = kernel.family,
          .kernel = kernel.name,
          .grid = {.x = static_cast<uint32_t>(rows),
                   .y = static_cast<uint32_t>(head_blocks),
                   .z = static_cast<uint32_t>(params.splits)},
          .threads = static_cast<uint32_t>(kWaves * device.lane_count),
          .reads_ahead = few ? ReadsAhead::tables : ReadsAhead::anything,
          .writes = Writes::results},
         params);
}

const Impl<AttentionArgs> attention_decode{"gpu_decode", refuse_dense, run_dense};
const Impl<PagedAttentionArgs> paged_attention_decode{"gpu_decode", refuse_paged, run_paged};
const Impl<PagedAttentionArgs> paged_attention_split{"gpu_split", refuse_split, run_split};

}  // namespace rbee::gpu
