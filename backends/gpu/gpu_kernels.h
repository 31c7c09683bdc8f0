#pragma once
// The implementations of every operation that run on every GPU. Each is defined in ops/<op>.cc over
// the kernels of kernels/<family>.cu, and refuses only what the seam does not promise.

#include "backends/api/kernel_table.h"

namespace rbee::gpu {

// The slots that all vendors share, ours alone; vendors put faster entries before some of them.
KernelTable common_kernels();

}  // namespace rbee::gpu
