#pragma once

#include "backends/api/args_attention.h"
#include "backends/api/impl.h"

namespace rbee::cpu {

// Runs the table's best rope and kv_append, one after the other.
extern const Impl<RopeAppendArgs> composed_rope_append;
// Runs ref's.
extern const Impl<RopeAppendArgs> ref_rope_append;

}  // namespace rbee::cpu
