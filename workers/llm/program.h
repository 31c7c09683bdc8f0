#pragma once
// What tells one worker executable from another; each links one file that defines program().

#include "backends/api/registry.h"

namespace rbee::workers {

struct Program {
  const char* name;  // e.g. "llm-worker-rbee-cpu"
  DeviceKind kind;   // of the device that the model runs on
  const BackendInfo& (*backend)();
};

const Program& program();

}  // namespace rbee::workers
