#pragma once

#include "backends/api/args_elementwise.h"
#include "backends/api/impl.h"

namespace rbee::cpu {

// Copies of rows whose elements adjoin on both sides, by parts of rows, on all threads.
extern const Impl<CopyArgs> rows_copy;

}  // namespace rbee::cpu
