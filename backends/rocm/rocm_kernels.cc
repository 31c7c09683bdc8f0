#include "backends/rocm/rocm_kernels.h"

#include "backends/gpu/gpu_kernels.h"
#include "backends/gpu/ops/attention.h"
#include "backends/gpu/ops/experts.h"
#include "backends/gpu/ops/image_conv.h"
#include "backends/gpu/ops/linear.h"
#include "backends/gpu/ops/linear_few.h"
#include "backends/gpu/ops/linear_one.h"
#include "backends/gpu/ops/matmul.h"
#include "backends/gpu/slot.h"
#include "backends/rocm/hipblaslt.h"
#include "backends/rocm/ops/attention_matrix.h"
#include "backends/rocm/ops/expert_matrix.h"
#include "backends/rocm/ops/image_conv_matrix.h"
#include "backends/rocm/ops/linear_few_rows.h"
#include "backends/rocm/ops/linear_matrix.h"

namespace rbee::rocm {
namespace {

// For gfx908, gfx90a, gfx942 and gfx950.
KernelTable mfma_kernels() {
  KernelTable t = gpu::common_kernels();
  t.attention =
      gpu::slot<gpu::attention_decode, attention_mfma, gpu::attention_wide, gpu::attention>();
  t.paged_attention = gpu::slot<gpu::paged_attention_split, gpu::paged_attention_decode,
                                paged_attention_mfma, gpu::paged_attention>();
  t.linear = gpu::slot<gpu::linear_one, linear_few_packed_mfma, gpu::linear_few, linear_hipblaslt,
                       linear_slabs, linear_few_plain_mfma, linear_mfma, gpu::linear>();
  t.fused_linear = gpu::slot<gpu::fused_linear_one, fused_linear_hipblaslt>();
  t.linear_norm = gpu::slot<linear_norm_few_packed_mfma, linear_norm_few_plain_mfma>();
  t.matmul = gpu::slot<matmul_hipblaslt, matmul_mfma, gpu::matmul>();
  t.image_conv = gpu::slot<image_conv_mfma, gpu::image_conv_plain>();
  t.expert_linear =
      gpu::slot<gpu::expert_matvec, expert_few_mfma, expert_mfma, gpu::expert_tiles>();
  return t;
}

// For gfx11 and gfx12.
KernelTable wmma_kernels() {
  KernelTable t = gpu::common_kernels();
  t.attention =
      gpu::slot<gpu::attention_decode, attention_wmma, gpu::attention_wide, gpu::attention>();
  t.paged_attention = gpu::slot<gpu::paged_attention_split, gpu::paged_attention_decode,
                                paged_attention_wmma, gpu::paged_attention>();
  t.linear = gpu::slot<gpu::linear_one, linear_few_packed_wmma, gpu::linear_few, linear_hipblaslt,
                       linear_slabs, linear_few_plain_wmma, linear_wmma, gpu::linear>();
  t.fused_linear = gpu::slot<gpu::fused_linear_one, fused_linear_hipblaslt>();
  t.linear_norm = gpu::slot<linear_norm_few_packed_wmma, linear_norm_few_plain_wmma>();
  t.matmul = gpu::slot<matmul_hipblaslt, matmul_wmma, gpu::matmul>();
  t.image_conv = gpu::slot<image_conv_wmma, gpu::image_conv_plain>();
  t.expert_linear =
      gpu::slot<gpu::expert_matvec, expert_few_wmma, expert_wmma, gpu::expert_tiles>();
  return t;
}

// For the others.
KernelTable dot_kernels() {
  KernelTable t = gpu::common_kernels();
  t.linear =
      gpu::slot<gpu::linear_one, gpu::linear_few, linear_slabs_dot, linear_dot, gpu::linear>();
  t.matmul = gpu::slot<matmul_dot, gpu::matmul>();
  t.image_conv = gpu::slot<image_conv_dot, gpu::image_conv_plain>();
  t.expert_linear = gpu::slot<gpu::expert_matvec, expert_dot, gpu::expert_tiles>();
  return t;
}

}  // namespace

const KernelTable& rocm_kernels(const gpu::Properties& device) {
  static const KernelTable dot = dot_kernels();
  static const KernelTable mfma = mfma_kernels();
  static const KernelTable wmma = wmma_kernels();
  switch (device.matrix) {
    case gpu::MatrixUnit::mfma:
      return mfma;
    case gpu::MatrixUnit::wmma_w32:
      return wmma;
    default:
      return dot;
  }
}

}  // namespace rbee::rocm
