#pragma once
// The implementations of every operation that run on every GPU. Each is defined in ops/<op>.cc,
// uses kernels of kernels/<family>.cu, and refuses only what the operation's interface does not
// promise.

#include "backends/api/kernel_table.h"

namespace rbee::gpu {

// The slots with the implementations that all vendors share; vendors put faster ones before some of
// them.
KernelTable common_kernels();

}  // namespace rbee::gpu
