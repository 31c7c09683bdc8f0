#include "backends/metal/metal_kernels.h"

#include "backends/gpu/gpu_kernels.h"
#include "backends/gpu/ops/attention.h"
#include "backends/gpu/ops/experts.h"
#include "backends/gpu/ops/image_conv.h"
#include "backends/gpu/ops/linear.h"
#include "backends/gpu/ops/linear_few.h"
#include "backends/gpu/ops/linear_one.h"
#include "backends/gpu/ops/matmul.h"
#include "backends/gpu/slot.h"
#include "backends/metal/ops/attention_simdgroup.h"
#include "backends/metal/ops/experts_simdgroup.h"
#include "backends/metal/ops/image_conv_simdgroup.h"
#include "backends/metal/ops/linear_simdgroup.h"
#include "backends/metal/ops/matmul_simdgroup.h"

namespace rbee::metal {
namespace {

// All devices that the driver takes have simdgroup matrices.
KernelTable all_kernels() {
  KernelTable t = gpu::common_kernels();
  t.attention = gpu::slot<gpu::attention_decode, attention_simdgroup, gpu::attention>();
  t.paged_attention = gpu::slot<gpu::paged_attention_split, gpu::paged_attention_decode,
                                paged_attention_simdgroup, gpu::paged_attention>();
  t.expert_linear = gpu::slot<gpu::expert_matvec, experts_simdgroup, gpu::expert_tiles>();
  t.image_conv = gpu::slot<image_conv_simdgroup, gpu::image_conv_plain>();
  t.matmul = gpu::slot<matmul_simdgroup, gpu::matmul>();
  t.linear = gpu::slot<gpu::linear_one, gpu::linear_few, linear_simdgroup, gpu::linear>();
  return t;
}

}  // namespace

const KernelTable& metal_kernels(const gpu::Properties&) {
  static const KernelTable table = all_kernels();
  return table;
}

}  // namespace rbee::metal
