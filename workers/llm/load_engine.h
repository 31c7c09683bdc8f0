#pragma once
// From a checkpoint and a backend to an engine.

#include "backends/api/registry.h"
#include "workers/llm/worker.h"

namespace rbee::workers {

// Throws what is wrong with the device or the checkpoint.
LoadedEngine load_engine(const BackendInfo& backend, const Flags& flags);

}  // namespace rbee::workers
