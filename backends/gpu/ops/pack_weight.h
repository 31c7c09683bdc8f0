#pragma once

#include "backends/api/args_matmul.h"
#include "backends/api/impl.h"

namespace rbee::gpu {

// View::packing of block-quantised weights in the layout of backends/shared/packed_weight.h.
inline constexpr uint8_t kPlanesPacking = 1;

// Block types are packed; plain types and weights without elements stay as they are.
PackingPlan plan_packing(const View& weight);
extern const Impl<PackWeightArgs> pack_weight;

}  // namespace rbee::gpu
