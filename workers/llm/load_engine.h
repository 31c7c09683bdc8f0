#pragma once
// From a checkpoint and a backend to an engine.

#include <memory>

#include "backends/api/registry.h"
#include "rbee/engine/engine.h"
#include "workers/llm/flags.h"

namespace rbee::workers {

// Throws what is wrong with the device or the checkpoint.
std::unique_ptr<engine::Engine> load_engine(const BackendInfo& backend, const Flags& flags);

}  // namespace rbee::workers
