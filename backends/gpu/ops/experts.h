#pragma once

#include "backends/api/args_experts.h"
#include "backends/api/impl.h"
#include "backends/gpu/gpu_device.h"
#include "backends/shared/expert_params.h"

namespace rbee::gpu {

// Choices in the order of their experts, made on the device; the object owns the memory and frees
// it in stream order.
class ExpertGroups {
 public:
  ExpertGroups(const ExpertLinearArgs& args, Stream& stream);
  const shared::ExpertGroupsParams& params() const { return params_; }

 private:
  Scratch memory_;
  shared::ExpertGroupsParams params_;
};

// For kernels whose tiles have shared::kExpertRows choices of one expert.
shared::ExpertTilesParams expert_tiles_params(const ExpertLinearArgs& args, const ExpertPart& part,
                                              const ExpertGroups& groups);
// Tiles of so many choices by 64 outputs; an upper bound, since each expert may have one that is
// not full.
int64_t most_expert_tiles(const ExpertGroups& groups, int64_t outs);

// Choices of a row of x.
int32_t choices_of_row(const ExpertLinearArgs& args);

extern const Impl<RouteExpertsArgs> route_experts;
extern const Impl<ExpertLinearArgs> expert_matvec;  // few tokens: limited by memory
extern const Impl<ExpertLinearArgs> expert_tiles;
extern const Impl<ExpertSumArgs> expert_sum;

}  // namespace rbee::gpu
