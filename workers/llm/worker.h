#pragma once
// The chat worker, whatever its device.

#include <memory>

#include "rbee/engine/engine.h"
#include "workers/common/worker.h"
#include "workers/llm/flags.h"

namespace rbee::workers {

using LoadEngine = std::unique_ptr<engine::Engine> (*)(const Flags&);

// main(). Exit status: 0 after --help or --version, 2 for wrong usage, else run_worker()'s.
int run_llm_worker(const Program& program, LoadEngine load, int argc, const char* const* argv);

}  // namespace rbee::workers
