#include "backends/metal/ops/attention_simdgroup.h"

#include <algorithm>

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/ops/attention.h"
#include "backends/gpu/rows.h"

namespace rbee::metal {
namespace {

using shared::AttentionParams;

// As in kernels/attention_simdgroup.cu.
constexpr uint32_t kThreads = 128;
constexpr int64_t kRows = 32, kMostElements = 256, kRun = 8;

const char* refuse_wide(const View& q, const View& k, const View& v) {
  if (q.dtype == DType::f64) return "f64 needs sums in double";
  if (k.dtype != DType::f32 && k.dtype != DType::f16 && k.dtype != DType::bf16) {
    return "keys are not f32, f16 or bf16";
  }
  if (std::max(k.size(-1), v.size(-1)) > kMostElements) return "heads have too many elements";
  if (k.size(-1) % kRun != 0 || v.size(-1) % kRun != 0) return "heads are not multiples of 8";
  if (!gpu::vector_rows(k) || !gpu::vector_rows(v)) return "keys cannot be read 16 bytes at a time";
  return nullptr;
}

const char* refuse_dense(const AttentionArgs& args) {
  return refuse_wide(args.q, args.k, args.v);
}

const char* refuse_paged(const PagedAttentionArgs& args) {
  if (gpu::narrow_cache(args)) return gpu::refuse_narrow_cache(args, kMostElements);
  return refuse_wide(args.q, args.k_cache, args.v_cache);
}

void run(const char* op, const AttentionParams& params, DType keys, Stream& stream) {
  const int64_t dim = std::max(params.head_dim, params.v_dim);
  gpu::launch(stream,
              {.op = op,
               .family = "attention_simdgroup",
               .kernel = gpu::KernelName("attention_simdgroup", keys,
                                         dim <= 64    ? "d64"
                                         : dim <= 128 ? "d128"
                                                      : "d256"),
               .grid = gpu::query_grid(params, kRows),
               .threads = kThreads},
              params);
}

void run_dense(const AttentionArgs& args, Stream& stream) {
  if (args.y.numel() == 0) return;
  run("attention", gpu::attention_params(args), args.k.dtype, stream);
}

void run_paged(const PagedAttentionArgs& args, Stream& stream) {
  if (args.y.numel() == 0) return;
  run("paged_attention", gpu::attention_params(args), args.k_cache.dtype, stream);
}

}  // namespace

const Impl<AttentionArgs> attention_simdgroup{"simdgroup", refuse_dense, run_dense};
const Impl<PagedAttentionArgs> paged_attention_simdgroup{"simdgroup", refuse_paged, run_paged};

}  // namespace rbee::metal
