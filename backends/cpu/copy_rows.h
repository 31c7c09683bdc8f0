#pragma once

#include "backends/api/args_elementwise.h"
#include "backends/api/impl.h"

namespace rbee::cpu {

// Copies whose neighbours adjoin on both sides: parts of rows at a time, on all threads.
extern const Impl<CopyArgs> rows_copy;

}  // namespace rbee::cpu
