#include "backends/cuda/cuda_kernels.h"

#include "backends/cuda/cublaslt.h"
#include "backends/cuda/ops/attention_decode_mma.h"
#include "backends/cuda/ops/attention_latent_mma.h"
#include "backends/cuda/ops/attention_mma.h"
#include "backends/cuda/ops/attention_tma.h"
#include "backends/cuda/ops/attention_wgmma.h"
#include "backends/cuda/ops/expert_mma.h"
#include "backends/cuda/ops/image_conv_mma.h"
#include "backends/cuda/ops/image_conv_tma.h"
#include "backends/cuda/ops/linear_few_mma.h"
#include "backends/cuda/ops/linear_few_packed.h"
#include "backends/cuda/ops/linear_few_tma.h"
#include "backends/cuda/ops/linear_mma.h"
#include "backends/cuda/ops/linear_one_tma.h"
#include "backends/cuda/ops/linear_packed_tma.h"
#include "backends/cuda/ops/linear_slabs.h"
#include "backends/cuda/ops/linear_tma.h"
#include "backends/cuda/ops/linear_wgmma.h"
#include "backends/gpu/gpu_kernels.h"
#include "backends/gpu/ops/attention.h"
#include "backends/gpu/ops/experts.h"
#include "backends/gpu/ops/image_conv.h"
#include "backends/gpu/ops/linear.h"
#include "backends/gpu/ops/linear_few.h"
#include "backends/gpu/ops/linear_one.h"
#include "backends/gpu/ops/matmul.h"
#include "backends/gpu/ops/qkv_append.h"
#include "backends/gpu/slot.h"

namespace rbee::cuda {
namespace {

// For sm_80 and later.
KernelTable mma_kernels() {
  KernelTable t = gpu::common_kernels();
  t.attention = gpu::slot<attention_decode_mma, gpu::attention_decode, attention_mma,
                          gpu::attention_wide, gpu::attention>();
  t.paged_attention =
      gpu::slot<gpu::paged_attention_split, paged_attention_decode_mma, gpu::paged_attention_decode,
                paged_attention_mma, gpu::paged_attention>();
  t.linear = gpu::slot<gpu::linear_one, linear_few_mma, linear_few_packed, gpu::linear_few,
                       linear_cublaslt, linear_slabs_mma, linear_mma, gpu::linear>();
  t.fused_linear = gpu::slot<gpu::fused_linear_one, fused_linear_cublaslt>();
  t.linear_norm = gpu::slot<linear_norm_few_packed>();
  t.matmul = gpu::slot<matmul_cublaslt, matmul_mma, gpu::matmul>();
  t.image_conv = gpu::slot<image_conv_mma, gpu::image_conv_plain>();
  t.expert_linear = gpu::slot<gpu::expert_matvec, expert_mma, gpu::expert_tiles>();
  return t;
}

// The same if blocks have the shared memory for a tile of wide heads: not sm_86 and
// sm_89.
KernelTable large_mma_kernels() {
  KernelTable t = mma_kernels();
  t.paged_attention =
      gpu::slot<gpu::paged_attention_split, paged_attention_decode_mma, gpu::paged_attention_decode,
                paged_attention_mma, attention_latent_mma, gpu::paged_attention>();
  return t;
}

// For sm_90, if this build has code for it.
KernelTable wgmma_kernels() {
  KernelTable t = mma_kernels();
  t.attention = gpu::slot<attention_decode_mma, gpu::attention_decode, attention_tma,
                          attention_wgmma, attention_mma, gpu::attention_wide, gpu::attention>();
  t.paged_attention = gpu::slot<gpu::paged_attention_split, paged_attention_decode_mma,
                                gpu::paged_attention_decode, paged_attention_wgmma,
                                paged_attention_mma, attention_latent_mma, gpu::paged_attention>();
  t.linear =
      gpu::slot<linear_one_tma, gpu::linear_one, linear_few_mma, linear_tma_e4m3, linear_packed_tma,
                linear_few_packed, gpu::linear_few, linear_cublaslt, linear_slabs_wgmma,
                linear_few_tma, linear_tma, linear_wgmma, linear_mma, gpu::linear>();
  t.fused_linear = gpu::slot<fused_linear_one_tma, gpu::fused_linear_one, fused_linear_cublaslt>();
  t.qkv_append = gpu::slot<qkv_append_one_tma, gpu::qkv_append_one>();
  t.linear_norm = gpu::slot<linear_norm_fewer_packed, linear_norm_few_tma>();
  t.matmul = gpu::slot<matmul_cublaslt, matmul_wgmma, matmul_mma, gpu::matmul>();
  t.image_conv = gpu::slot<image_conv_tma, image_conv_mma, gpu::image_conv_plain>();
  return t;
}

#ifdef RBEE_CUDA_SM90A
constexpr bool kHasWgmma = true;
#else
constexpr bool kHasWgmma = false;
#endif

}  // namespace

const KernelTable& cuda_kernels(const gpu::Properties& device) {
  static const KernelTable plain = gpu::common_kernels();
  static const KernelTable mma = mma_kernels();
  static const KernelTable large_mma = large_mma_kernels();
  static const KernelTable wgmma = wgmma_kernels();
  if (device.matrix == gpu::MatrixUnit::none) return plain;
  if (kHasWgmma && device.matrix == gpu::MatrixUnit::wgmma) return wgmma;
  return device.shared_per_block >= kLatentSharedBytes ? large_mma : mma;
}

}  // namespace rbee::cuda
