#include "backends/gpu/ops/qkv_append.h"

#include <algorithm>
#include <array>

#include "backends/gpu/ops/linear_one.h"
#include "backends/gpu/ops/rope.h"

namespace rbee::gpu {
namespace {

// With the queries' results in their final place.
FusedLinearArgs products_of(const QkvAppendArgs& args, std::span<const LinearPart> parts) {
  return {.x = args.x,
          .norm_weight = args.norm_weight,
          .eps = args.eps,
          .residual = {},
          .parts = parts};
}

const char* refuse_on(const QkvAppendArgs& args, Stream& stream) {
  return refuse_long_x(args.x, args.parts, stream);
}
void run(const QkvAppendArgs& args, Stream& stream) {
  run_qkv_append(args, start_one_row, stream);
}

}  // namespace

const char* refuse_qkv_append(const QkvAppendArgs& args) {
  if (args.k_cache.dtype == DType::q8_0) return "elements of a q8_0 cache share a scale";
  if (args.k_cache.stride(3) != 1 || args.v_cache.stride(3) != 1) return "writes heads as rows";
  if (args.k_cache.size(3) % 2 != 0) return "heads have pairs of elements";
  if (args.cos.size(1) > shared::kMatvecMostPairs) return "heads have up to 256 rotated elements";
  return refuse_one_row(products_of(args, args.parts));
}

void run_qkv_append(const QkvAppendArgs& args, StartOneRow start, Stream& stream) {
  const int64_t head_dim = args.k_cache.size(3);
  shared::MatvecHeads heads{};
  heads.tables = rope_tables(args.cos, args.sin, args.layout);
  heads.position = args.positions.as<const int32_t>();
  heads.slot = args.slots.as<const int32_t>();
  const std::array caches{&args.k_cache, &args.v_cache};
  for (size_t i = 0; i < caches.size(); ++i) {
    heads.caches[i] = caches[i]->data;
    std::copy_n(caches[i]->strides, 3, heads.cache_strides[i]);
  }
  heads.head_groups = shared::make_divider(static_cast<uint32_t>(head_dim / shared::kMatvecOuts));
  heads.head_dim = static_cast<int32_t>(head_dim);
  heads.block_size = static_cast<int32_t>(args.k_cache.size(2));
  heads.cache_to = rope_cache_type(args.k_cache.dtype);
  std::array<LinearPart, 3> parts;
  std::ranges::copy(args.parts, parts.begin());
  parts[0].y = args.q_out;
  run_one_row(products_of(args, parts), {.start = start, .heads = &heads}, stream);
}

const Impl<QkvAppendArgs> qkv_append_one{"gpu_one", refuse_qkv_append, run, refuse_on};

}  // namespace rbee::gpu
