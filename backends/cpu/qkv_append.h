#pragma once

#include "backends/api/args_attention.h"
#include "backends/api/impl.h"

namespace rbee::cpu {

// Runs the table's best fused_linear and rope_append, one after the other.
extern const Impl<QkvAppendArgs> composed_qkv_append;
// Runs ref's.
extern const Impl<QkvAppendArgs> ref_qkv_append;

}  // namespace rbee::cpu
