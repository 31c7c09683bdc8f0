#pragma once
// The backends that this build has, for programs that serve every device (the command line, tests).
// A worker registers its one accelerator itself.

namespace rbee {

// Registers the CPU, then what RBEE_CUDA and RBEE_ROCM added.
void register_linked_backends();

}  // namespace rbee
