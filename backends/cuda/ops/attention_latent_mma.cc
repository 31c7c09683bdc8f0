#include "backends/cuda/ops/attention_latent_mma.h"

#include "backends/gpu/ops/attention_rows.h"

namespace rbee::cuda {
namespace {

// As in kernels/attention_latent_mma.cu.
constexpr int64_t kMostElements = 576;
constexpr int64_t kRows = 64;
constexpr uint32_t kThreads = 256;

const char* refuse(const PagedAttentionArgs& args) {
  return gpu::refuse_rows(args, kMostElements);
}

void run(const PagedAttentionArgs& args, Stream& stream) {
  gpu::launch_rows(args,
                   {.family = "attention_latent_mma",
                    .name = gpu::KernelName("attention_latent_mma", args.k_cache.dtype),
                    .rows = kRows,
                    .threads = kThreads,
                    .shared_bytes = kLatentSharedBytes},
                   stream);
}

}  // namespace

const Impl<PagedAttentionArgs> attention_latent_mma{"mma_latent", refuse, run};

}  // namespace rbee::cuda
