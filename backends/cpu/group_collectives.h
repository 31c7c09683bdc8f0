#pragma once
// Collective operations of CPUs' ranks on one machine, over GroupMemory.

#include "backends/api/args_collective.h"
#include "backends/api/impl.h"

namespace rbee::cpu {

extern const Impl<AllReduceArgs> shared_all_reduce;
extern const Impl<AllGatherArgs> shared_all_gather;
extern const Impl<BroadcastArgs> shared_broadcast;

}  // namespace rbee::cpu
