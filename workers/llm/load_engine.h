#pragma once
// Makes an engine from a checkpoint and a backend.

#include "backends/api/registry.h"
#include "workers/llm/worker.h"

namespace rbee::workers {

// A LoadEngine. Throws for errors of the device or the checkpoint.
LoadedEngine load_engine(const BackendInfo& backend, Flags& flags, server::LoadingState& loading);

// A FollowLeader. Throws for errors of the flags, the rest is the status.
int follow_leader(const BackendInfo& backend, const Flags& flags);

}  // namespace rbee::workers
