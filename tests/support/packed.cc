#include "tests/support/packed.h"

#include <memory>

#include "backends/api/kernel_table.h"

namespace rbee::harness {

View pack(const View& weight, Scene& scene) {
  const KernelTable& kernels = scene.device().kernels();
  const PackingPlan plan = kernels.plan_packing(weight);
  if (plan.packing == 0) return weight;
  const auto buffer =
      scene.hold(std::make_shared<Buffer>(scene.device(), static_cast<size_t>(plan.bytes)));
  View packed = weight;
  packed.data = buffer->data();
  packed.packing = plan.packing;
  kernels.pack_weight.front().run({.weight = weight, .packed = packed},
                                  scene.device().default_stream());
  return packed;
}

}  // namespace rbee::harness
