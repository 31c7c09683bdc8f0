#pragma once

#include "backends/api/args_indexing.h"
#include "backends/api/impl.h"

namespace rbee::cpu {

// index_select along the last axis of a matrix of 16 or 32 bits, on all threads.
extern const Impl<IndexSelectArgs> columns_index_select;

}  // namespace rbee::cpu
