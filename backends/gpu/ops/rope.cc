#include "backends/gpu/ops/rope.h"

#include <algorithm>
#include <bit>

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/launch.h"
#include "backends/gpu/loop.h"
#include "backends/shared/kv_page.h"
#include "backends/shared/rope_params.h"

namespace rbee::gpu {
namespace {

constexpr int64_t kThreads = 256;  // as in kernels/rope.cu
constexpr int kMostLaneBits = 5;   // threads of a head; more loop less, and each waits as long

// True if the last axis of a view can be read in runs of `each` elements.
bool runs(const View& view, int64_t each) {
  const int64_t bytes = std::min<int64_t>(each * info(view.dtype).block_bytes, 16);
  if (view.stride(-1) != 1 || view.size(-1) % each != 0) return false;
  for (int axis = 0; axis + 1 < view.rank; ++axis) {
    if (view.sizes[axis] > 1 && view.strides[axis] % each != 0) return false;
  }
  return reinterpret_cast<uintptr_t>(view.data) % static_cast<uintptr_t>(bytes) == 0;
}

// Elements that a thread takes at once: 1 unless a view's layout allows more.
int64_t run_length(DType dtype, std::initializer_list<const View*> views) {
  if (dtype == DType::f64 || dtype == DType::f8e4m3) return 1;
  const int64_t each = elements_per_thread(info(dtype).block_bytes);
  const bool all =
      std::all_of(views.begin(), views.end(), [&](const View* v) { return runs(*v, each); });
  return all ? each : 1;
}

// Threads for a head with this many runs; a rotation takes two runs at once.
uint32_t lane_bits(int64_t head_dim, int64_t pairs, int64_t each) {
  const auto steps = static_cast<uint64_t>(std::max<int64_t>((head_dim - pairs) / each, 1));
  return static_cast<uint32_t>(std::min<uint64_t>(std::bit_width(steps - 1), kMostLaneBits));
}

template <int kCount>
void copy_strides(int64_t (&to)[kCount], const View& view) {
  std::copy_n(view.strides, kCount, to);
}

// Launches `kernel` with `each` threads for a row, of which a launch has 2^31 at most: AMD counts
// the threads of one in 32 bits. y: blocks along that axis.
template <typename Params>
void start_rows(Stream& stream, const char* op, const KernelName& kernel, int64_t each, int64_t y,
                Params params) {
  const int64_t most = (int64_t{1} << 31) / each;
  for (params.first = 0; params.first < params.rows; params.first += most) {
    const int64_t rows = std::min(most, params.rows - params.first);
    launch(stream,
           {.op = op,
            .family = "rope",
            .kernel = kernel,
            .grid = {.x = blocks_for(rows * each, kThreads), .y = static_cast<uint32_t>(y)},
            .threads = kThreads,
            .writes = Writes::results},
           params);
  }
}

template <typename Params>
void start(Stream& stream, const char* op, DType dtype, int64_t each, const Params& params) {
  const KernelName kernel(op, dtype, each > 1 ? "packed" : "");
  start_rows(stream, op, kernel, int64_t{1} << params.lane_bits, 1, params);
}

void run_rope(const RopeArgs& args, Stream& stream) {
  const View& x = args.x;
  if (x.numel() == 0) return;
  const int64_t each = run_length(x.dtype, {&x, &args.y, &args.cos, &args.sin});
  shared::RopeParams params{.x = x.data,
                            .y = args.y.data,
                            .positions = args.positions.as<const int32_t>(),
                            .tables = rope_tables(args.cos, args.sin, args.layout),
                            .x_strides = {},
                            .y_strides = {},
                            .position_strides = {},
                            .rows = x.size(0) * x.size(1) * x.size(2),
                            .first = 0,
                            .heads = shared::make_divider(static_cast<uint32_t>(x.size(1))),
                            .time = shared::make_divider(static_cast<uint32_t>(x.size(2))),
                            .head_dim = static_cast<int32_t>(x.size(3)),
                            .lane_bits = lane_bits(x.size(3), args.cos.size(1), each)};
  copy_strides(params.x_strides, x);
  copy_strides(params.y_strides, args.y);
  copy_strides(params.position_strides, args.positions);
  start(stream, "rope", x.dtype, each, params);
}

// What kv_append and rope_append share; `heads` of q.
shared::AppendParams append_params(const KvAppendArgs& args, int64_t heads) {
  const int64_t kv_heads = args.k.size(1);
  const auto token_rows = static_cast<uint32_t>(heads + 2 * kv_heads);
  shared::AppendParams params{};
  params.fresh[0] = args.k.data;
  params.fresh[1] = args.v.data;
  params.caches[0] = args.k_cache.data;
  params.caches[1] = args.v_cache.data;
  params.slots = args.slots.as<const int32_t>();
  copy_strides(params.fresh_strides[0], args.k);
  copy_strides(params.fresh_strides[1], args.v);
  copy_strides(params.cache_strides[0], args.k_cache);
  copy_strides(params.cache_strides[1], args.v_cache);
  params.slots_step = args.slots.stride(0);
  params.rows = args.k.size(0) * token_rows;
  params.token_rows = shared::make_divider(token_rows);
  params.heads = static_cast<int32_t>(heads);
  params.kv_heads = static_cast<int32_t>(kv_heads);
  params.head_dim = static_cast<int32_t>(args.k.size(2));
  params.block_size = static_cast<int32_t>(args.k_cache.size(2));
  params.cache_to = rope_cache_type(args.k_cache.dtype);
  return params;
}

// A group of a head shares a scale and takes 32 threads.
void start_pages(Stream& stream, const char* op, DType dtype, const shared::AppendParams& params) {
  KernelName kernel(op, dtype, "q8_0");
  kernel.lanes(device_of(stream).properties().lane_count);
  start_rows(stream, op, kernel, shared::kPageGroup, params.head_dim / shared::kPageGroup, params);
}

void run_kv_append(const KvAppendArgs& args, Stream& stream) {
  if (args.k.numel() == 0) return;
  if (args.k_cache.dtype == DType::q8_0) {
    return start_pages(stream, "kv_append", args.k.dtype, append_params(args, 0));
  }
  const int64_t each = run_length(args.k.dtype, {&args.k, &args.v, &args.k_cache, &args.v_cache});
  shared::AppendParams params = append_params(args, 0);
  params.lane_bits = lane_bits(args.k.size(2), 0, each);
  start(stream, "kv_append", args.k.dtype, each, params);
}

void run_rope_append(const RopeAppendArgs& args, Stream& stream) {
  if (args.q.numel() == 0 && args.k.numel() == 0) return;
  shared::AppendParams params =
      append_params({args.k, args.v, args.slots, args.k_cache, args.v_cache}, args.q.size(1));
  params.q = args.q.data;
  params.q_out = args.q_out.data;
  params.positions = args.positions.as<const int32_t>();
  params.positions_step = args.positions.stride(0);
  params.tables = rope_tables(args.cos, args.sin, args.layout);
  copy_strides(params.q_strides, args.q);
  copy_strides(params.q_out_strides, args.q_out);
  if (args.k_cache.dtype == DType::q8_0) {
    return start_pages(stream, "rope_append", args.q.dtype, params);
  }
  const int64_t each = run_length(args.q.dtype, {&args.q, &args.k, &args.v, &args.q_out, &args.cos,
                                                 &args.sin, &args.k_cache, &args.v_cache});
  params.lane_bits = lane_bits(args.q.size(2), args.cos.size(1), each);
  start(stream, "rope_append", args.q.dtype, each, params);
}

}  // namespace

shared::RopeTables rope_tables(const View& cos, const View& sin, RopeLayout layout) {
  return {.cos = cos.as<const float>(),
          .sin = sin.as<const float>(),
          .cos_row = cos.stride(0),
          .cos_step = cos.stride(1),
          .sin_row = sin.stride(0),
          .sin_step = sin.stride(1),
          .pairs = static_cast<int32_t>(cos.size(1)),
          .interleaved = layout == RopeLayout::interleaved};
}

uint32_t rope_cache_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return 0;
    case DType::f16:
      return 1;
    case DType::bf16:
      return 2;
    default:
      return 3;
  }
}

const Impl<RopeArgs> rope{"gpu", never_refuse, run_rope};
const Impl<KvAppendArgs> kv_append{"gpu", never_refuse, run_kv_append};
const Impl<RopeAppendArgs> rope_append{"gpu", never_refuse, run_rope_append};

}  // namespace rbee::gpu
