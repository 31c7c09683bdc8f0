#include "backends/cuda/ops/attention_wgmma.h"

#include <algorithm>

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/ops/attention.h"

namespace rbee::cuda {
namespace {

using shared::AttentionParams;

// As in kernels/attention_wgmma.cu.
constexpr int64_t kRows = 128;
constexpr int64_t kKeys = 128;
constexpr int64_t kStages = 2;
constexpr int64_t kMostElements = 128;

// Queries, the stages of keys and values, the barriers' line, and room to align them.
constexpr int64_t shared_bytes(int64_t dim) {
  return (kRows + 2 * kStages * kKeys) * dim * 2 + 1024 + 1024;
}

void run_wgmma(const char* op, const AttentionParams& params, DType keys, Stream& stream) {
  const bool small = std::max(params.head_dim, params.v_dim) <= 64;
  gpu::launch(stream,
              {.op = op,
               .family = "attention_wgmma",
               .kernel = gpu::KernelName("attention_wgmma", keys, small ? "d64" : "d128"),
               .grid = gpu::query_grid(params, kRows),
               .threads = 384,
               .shared_bytes = static_cast<uint32_t>(shared_bytes(small ? 64 : 128))},
              params);
}

// The kernel counts rows in 32 bits, in units of 16 bytes.
const char* refuse_size(const View& k, const View& v) {
  constexpr int64_t kMost = int64_t{64} << 30;
  return std::max(gpu::span_bytes(k), gpu::span_bytes(v)) > kMost ? "more than 64 GiB of keys"
                                                                  : nullptr;
}

template <typename Args>
const char* refuse_scores(const Args& args) {
  return gpu::shaped_scores(gpu::attention_params(args)) ? "scores are more than products"
                                                         : nullptr;
}

const char* refuse_dense(const AttentionArgs& args) {
  const char* reason = gpu::refuse_attention_tiles(args.q, args.k, args.v, args.y, kMostElements);
  if (reason == nullptr) reason = refuse_size(args.k, args.v);
  return reason != nullptr ? reason : refuse_scores(args);
}

const char* refuse_paged(const PagedAttentionArgs& args) {
  const char* reason =
      gpu::refuse_attention_tiles(args.q, args.k_cache, args.v_cache, args.y, kMostElements);
  if (reason == nullptr) reason = refuse_size(args.k_cache, args.v_cache);
  return reason != nullptr ? reason : refuse_scores(args);
}

void run_dense(const AttentionArgs& args, Stream& stream) {
  if (args.y.numel() == 0) return;
  run_wgmma("attention", gpu::attention_params(args), args.k.dtype, stream);
}

void run_paged(const PagedAttentionArgs& args, Stream& stream) {
  if (args.y.numel() == 0) return;
  run_wgmma("paged_attention", gpu::attention_params(args), args.k_cache.dtype, stream);
}

}  // namespace

const Impl<AttentionArgs> attention_wgmma{"wgmma", refuse_dense, run_dense};
const Impl<PagedAttentionArgs> paged_attention_wgmma{"wgmma", refuse_paged, run_paged};

}  // namespace rbee::cuda
