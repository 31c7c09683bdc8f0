#pragma once
// The largest of long rows without sorting them.

#include "backends/api/kernel_table.h"

namespace rbee::cpu {

// f32 rows without gaps.
extern const Impl<TopKArgs> fast_top_k;

}  // namespace rbee::cpu
