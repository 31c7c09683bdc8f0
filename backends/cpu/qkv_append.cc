#include "backends/cpu/qkv_append.h"

#include <array>

#include "backends/api/kernel_table.h"
#include "backends/cpu/cpu_device.h"
#include "backends/cpu/fused_linear.h"
#include "backends/cpu/linear/scratch.h"
#include "backends/cpu/rope_append.h"
#include "backends/cpu/run_first.h"

namespace rbee::cpu {
namespace {

// Rows of results as heads.
View heads_of(const View& rows, int64_t head_dim) {
  return {.data = rows.data,
          .dtype = rows.dtype,
          .rank = 3,
          .sizes = {rows.sizes[0], rows.sizes[1] / head_dim, head_dim},
          .strides = {rows.sizes[1], head_dim, 1}};
}

void run(const QkvAppendArgs& args, Slot<FusedLinearArgs> linears, Slot<RopeAppendArgs> appends,
         Stream& stream) {
  static thread_local Scratch scratch;
  const int64_t rows = args.x.sizes[0], head_dim = args.k_cache.sizes[3];
  const int64_t item = info(args.x.dtype).block_bytes;
  std::array<LinearPart, 3> parts;
  int64_t bytes = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i] = args.parts[i];
    bytes += rows * parts[i].weight.sizes[0] * item;
  }
  std::byte* at = scratch.reserve(static_cast<size_t>(bytes));
  for (LinearPart& part : parts) {
    const int64_t outs = part.weight.sizes[0];
    part.y = {
        .data = at, .dtype = args.x.dtype, .rank = 2, .sizes = {rows, outs}, .strides = {outs, 1}};
    at += rows * outs * item;
  }
  run_first(linears,
            FusedLinearArgs{.x = args.x,
                            .norm_weight = args.norm_weight,
                            .eps = args.eps,
                            .residual = {},
                            .parts = parts},
            stream);
  run_first(appends,
            RopeAppendArgs{.q = heads_of(parts[0].y, head_dim),
                           .k = heads_of(parts[1].y, head_dim),
                           .v = heads_of(parts[2].y, head_dim),
                           .cos = args.cos,
                           .sin = args.sin,
                           .positions = args.positions,
                           .slots = args.slots,
                           .q_out = args.q_out,
                           .k_cache = args.k_cache,
                           .v_cache = args.v_cache,
                           .layout = args.layout},
            stream);
}

void run_composed(const QkvAppendArgs& args, Stream& stream) {
  run(args, cpu_kernels().fused_linear, cpu_kernels().rope_append, stream);
}

void run_ref(const QkvAppendArgs& args, Stream& stream) {
  run(args, {&ref_fused_linear, 1}, {&ref_rope_append, 1}, stream);
}

}  // namespace

const Impl<QkvAppendArgs> composed_qkv_append{"composed", never_refuse, run_composed};
const Impl<QkvAppendArgs> ref_qkv_append{"ref", never_refuse, run_ref};

}  // namespace rbee::cpu
