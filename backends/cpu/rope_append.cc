#include "backends/cpu/rope_append.h"

#include "backends/api/kernel_table.h"
#include "backends/cpu/cpu_device.h"
#include "backends/cpu/linear/scratch.h"
#include "backends/cpu/ref/paged_attention.h"
#include "backends/cpu/ref/rope.h"
#include "backends/cpu/run_first.h"

namespace rbee::cpu {
namespace {

// (tokens, heads, head_dim) as one sequence: (1, heads, tokens, head_dim).
View as_sequence(const View& rows) {
  return {.data = rows.data,
          .dtype = rows.dtype,
          .rank = 4,
          .sizes = {1, rows.sizes[1], rows.sizes[0], rows.sizes[2]},
          .strides = {0, rows.strides[1], rows.strides[0], rows.strides[2]}};
}

RopeArgs rotation(const RopeAppendArgs& args, const View& x, const View& y) {
  const View& at = args.positions;
  return {.x = as_sequence(x),
          .cos = args.cos,
          .sin = args.sin,
          .positions = {.data = at.data,
                        .dtype = at.dtype,
                        .rank = 2,
                        .sizes = {1, at.sizes[0]},
                        .strides = {0, at.strides[0]}},
          .y = as_sequence(y),
          .layout = args.layout};
}

void rope_append(const RopeAppendArgs& args, Slot<RopeArgs> ropes, Slot<KvAppendArgs> appends,
                 Stream& stream) {
  run_first(ropes, rotation(args, args.q, args.q_out), stream);
  static thread_local Scratch scratch;
  View keys = args.k;  // rotated, without gaps
  keys.strides[2] = 1;
  keys.strides[1] = keys.sizes[2];
  keys.strides[0] = keys.sizes[1] * keys.sizes[2];
  const auto bytes = static_cast<size_t>(keys.numel() * info(keys.dtype).block_bytes);
  keys.data = scratch.reserve(bytes);
  run_first(ropes, rotation(args, args.k, keys), stream);
  run_first(appends, KvAppendArgs{keys, args.v, args.slots, args.k_cache, args.v_cache}, stream);
}

void run_composed(const RopeAppendArgs& args, Stream& stream) {
  rope_append(args, cpu_kernels().rope, cpu_kernels().kv_append, stream);
}

void run_ref(const RopeAppendArgs& args, Stream& stream) {
  rope_append(args, {&ref_rope, 1}, {&ref_kv_append, 1}, stream);
}

}  // namespace

const Impl<RopeAppendArgs> composed_rope_append{"composed", never_refuse, run_composed};
const Impl<RopeAppendArgs> ref_rope_append{"ref", never_refuse, run_ref};

}  // namespace rbee::cpu
