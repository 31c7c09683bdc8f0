#pragma once

#include "backends/api/args_elementwise.h"
#include "backends/api/impl.h"

namespace rbee::cpu {

extern const Impl<GatedArgs> ref_gated;

}  // namespace rbee::cpu
