#pragma once
// The backends that this build has. Programs that serve every device (the command line, tests)
// register all; a worker registers its own.

#include <vector>

#include "backends/api/registry.h"

namespace rbee {

// The CPU, then what RBEE_CUDA, RBEE_ROCM and RBEE_METAL added.
std::vector<const BackendInfo*> linked_backends();
void register_linked_backends();

}  // namespace rbee
