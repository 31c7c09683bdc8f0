#include "backends/metal/metal_kernels.h"

#include "backends/gpu/gpu_kernels.h"
#include "backends/gpu/ops/linear.h"
#include "backends/gpu/ops/linear_few.h"
#include "backends/gpu/ops/linear_one.h"
#include "backends/gpu/slot.h"
#include "backends/metal/ops/linear_simdgroup.h"

namespace rbee::metal {
namespace {

// All devices that the driver takes have simdgroup matrices.
KernelTable all_kernels() {
  KernelTable t = gpu::common_kernels();
  t.linear = gpu::slot<gpu::linear_one, gpu::linear_few, linear_simdgroup, gpu::linear>();
  return t;
}

}  // namespace

const KernelTable& metal_kernels(const gpu::Properties&) {
  static const KernelTable table = all_kernels();
  return table;
}

}  // namespace rbee::metal
