#pragma once

#include "backends/api/args_collective.h"
#include "backends/api/impl.h"

namespace rbee::gpu {

// By NCCL or RCCL, see ccl_group.h. Sums of 16-bit numbers may be rounded at each step of a ring,
// and are in the library's order; all ranks get the same bits.
extern const Impl<AllReduceArgs> all_reduce_ccl;
extern const Impl<AllGatherArgs> all_gather_ccl;
extern const Impl<BroadcastArgs> broadcast_ccl;
// The same sum, then add_rms_norm.
extern const Impl<ReduceNormArgs> reduce_norm_ccl;

}  // namespace rbee::gpu
