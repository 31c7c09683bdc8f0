#include "backends/cuda/cuda_kernels.h"

#include "backends/cuda/cublaslt.h"
#include "backends/cuda/ops/attention_mma.h"
#include "backends/cuda/ops/linear_mma.h"
#include "backends/gpu/gpu_kernels.h"
#include "backends/gpu/ops/attention.h"
#include "backends/gpu/ops/linear.h"
#include "backends/gpu/ops/matmul.h"
#include "backends/gpu/slot.h"

namespace rbee::cuda {
namespace {

// For sm_80 and later.
KernelTable mma_kernels() {
  KernelTable t = gpu::common_kernels();
  t.attention = gpu::slot<gpu::attention_decode, attention_mma, gpu::attention>();
  t.paged_attention =
      gpu::slot<gpu::paged_attention_decode, paged_attention_mma, gpu::paged_attention>();
  t.linear = gpu::slot<linear_cublaslt, linear_mma, gpu::linear>();
  t.matmul = gpu::slot<matmul_cublaslt, gpu::matmul>();
  return t;
}

}  // namespace

const KernelTable& cuda_kernels(const gpu::Properties& device) {
  static const KernelTable plain = gpu::common_kernels();
  static const KernelTable mma = mma_kernels();
  return device.matrix == gpu::MatrixUnit::none ? plain : mma;
}

}  // namespace rbee::cuda
