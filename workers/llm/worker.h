#pragma once
// The chat worker, whatever its device: command line, log, signals; the model is loaded before
// anything listens.

#include <memory>

#include "rbee/core/device_id.h"
#include "rbee/engine/engine.h"
#include "workers/llm/flags.h"

namespace rbee::workers {

// What tells one executable from another.
struct Program {
  const char* name;  // e.g. "llm-worker-rbee-cpu"
  DeviceKind kind;   // of the device that the model runs on
  std::unique_ptr<engine::Engine> (*load)(const Flags&);
};

// main(). Exit status: 0 after a signal, POST /v1/shutdown, --help or --version; 1 when the worker
// cannot start; 2 for wrong usage; 3 when the device was lost while it served.
int run_worker(const Program& program, int argc, const char* const* argv);

}  // namespace rbee::workers
