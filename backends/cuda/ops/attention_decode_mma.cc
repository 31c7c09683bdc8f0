#include "backends/cuda/ops/attention_decode_mma.h"

#include "backends/gpu/ops/attention.h"
#include "backends/gpu/rows.h"

namespace rbee::cuda {
namespace {

using shared::AttentionParams;

constexpr int64_t kHeads = 8;         // as in kernels/attention_decode_mma.cu
constexpr int64_t kBlocksEach = 3;    // as there
constexpr int64_t kLeastShare = 128;  // measured: docs/decisions/0007-packed-weights-on-gpus.md

const char* refuse_operands(const View& q, const View& k, const View& y, int64_t v_dim) {
  if (k.dtype != DType::f16 && k.dtype != DType::bf16) return "keys are not f16 or bf16";
  if (q.dtype != k.dtype) return "q is not of the keys' type";
  const int64_t dim = q.size(-1);
  if ((dim != 64 && dim != 128) || v_dim != dim) return "heads are not of 64 or 128";
  if (!gpu::vector_rows(q)) return "q cannot be read 16 bytes at a time";
  if (!gpu::vector_rows(y)) return "y cannot be written 16 bytes at a time";
  return nullptr;
}

const char* refuse_dense(const AttentionArgs& args) {
  const char* reason = refuse_operands(args.q, args.k, args.y, args.v.size(3));
  return reason != nullptr ? reason : gpu::attention_decode.refuse(args);
}

const char* refuse_paged(const PagedAttentionArgs& args) {
  const char* reason = refuse_operands(args.q, args.k_cache, args.y, args.q.size(2));
  return reason != nullptr ? reason : gpu::paged_attention_decode.refuse(args);
}

void run(const char* op, const AttentionParams& params, DType cache, Stream& stream) {
  const char* dim = params.head_dim == 64 ? "d64" : "d128";
  gpu::launch_decode(op, params,
                     {.family = "attention_decode_mma",
                      .name = gpu::KernelName("attention_decode_mma", cache, dim),
                      .heads = kHeads,
                      .blocks_each = kBlocksEach,
                      .least_share = kLeastShare},
                     stream);
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

const Impl<AttentionArgs> attention_decode_mma{"mma_decode", refuse_dense, run_dense};
const Impl<PagedAttentionArgs> paged_attention_decode_mma{"mma_decode", refuse_paged, run_paged};

}  // namespace rbee::cuda
