#pragma once

#include "backends/api/kernel_table.h"

namespace rbee::cpu {

extern const Impl<ReduceArgs> ref_reduce;
extern const Impl<ArgsortArgs> ref_argsort;
extern const Impl<TopKArgs> ref_top_k;

}  // namespace rbee::cpu
