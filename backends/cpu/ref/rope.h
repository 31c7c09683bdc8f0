#pragma once

#include "backends/api/args_attention.h"
#include "backends/api/impl.h"

namespace rbee::cpu {

extern const Impl<RopeArgs> ref_rope;

}  // namespace rbee::cpu
