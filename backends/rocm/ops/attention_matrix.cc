#include "backends/rocm/ops/attention_matrix.h"

#include <algorithm>

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/ops/attention.h"

namespace rbee::rocm {
namespace {

using shared::AttentionParams;

enum class Unit : uint8_t { mfma, wmma };

// As in kernels/attention_tiles.h.
constexpr int64_t rows_of_tile(Unit unit, int64_t dim) {
  return unit == Unit::mfma && dim > 128 ? 64 : 128;
}
constexpr uint32_t threads_of_tile(Unit unit, int64_t dim) {
  return unit == Unit::wmma && dim > 128 ? 512 : 256;
}
constexpr int64_t kMostElements = 256;

template <Unit unit>
void run_tiles(const char* op, const AttentionParams& params, DType keys, Stream& stream) {
  const char* family = unit == Unit::mfma ? "attention_mfma" : "attention_wmma";
  const int64_t dim = std::max(params.head_dim, params.v_dim);
  const int64_t rows = rows_of_tile(unit, dim);
  gpu::KernelName kernel(family, keys, dim <= 64 ? "d64" : dim <= 128 ? "d128" : "d256");
  if (gpu::shaped_scores(params)) kernel.part("shaped");
  gpu::launch(stream,
              {.op = op,
               .family = family,
               .kernel = kernel,
               .grid = gpu::query_grid(params, rows),
               .threads = threads_of_tile(unit, dim)},
              params);
}

const char* refuse_dense(const AttentionArgs& args) {
  return gpu::refuse_attention_tiles(args.q, args.k, args.v, args.y, kMostElements);
}

const char* refuse_paged(const PagedAttentionArgs& args) {
  if (gpu::narrow_cache(args)) return gpu::refuse_narrow_cache(args, kMostElements);
  return gpu::refuse_attention_tiles(args.q, args.k_cache, args.v_cache, args.y, kMostElements);
}

template <Unit unit>
void run_dense(const AttentionArgs& args, Stream& stream) {
  if (args.y.numel() == 0) return;
  run_tiles<unit>("attention", gpu::attention_params(args), args.k.dtype, stream);
}

template <Unit unit>
void run_paged(const PagedAttentionArgs& args, Stream& stream) {
  if (args.y.numel() == 0) return;
  run_tiles<unit>("paged_attention", gpu::attention_params(args), args.k_cache.dtype, stream);
}

}  // namespace

const Impl<AttentionArgs> attention_mfma{"mfma", refuse_dense, run_dense<Unit::mfma>};
const Impl<PagedAttentionArgs> paged_attention_mfma{"mfma", refuse_paged, run_paged<Unit::mfma>};
const Impl<AttentionArgs> attention_wmma{"wmma", refuse_dense, run_dense<Unit::wmma>};
const Impl<PagedAttentionArgs> paged_attention_wmma{"wmma", refuse_paged, run_paged<Unit::wmma>};

}  // namespace rbee::rocm
